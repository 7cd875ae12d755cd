//! Lists that come in pages, read to their end; absent: lists without end, for there is a limit to pages.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::{Answer, Call, Client};
use crate::error::Error;
use crate::model::CommitStatus;

/// What is asked for per page: the server's own maximum, which it cuts larger wishes down to.
const PAGE_LIMIT: usize = 50;

/// Pages that are read of one list: 10 000 items.
const PAGES_MAX: u32 = 200;

/// One page of a list, in whatever it is wrapped.
pub(crate) trait Page: DeserializeOwned {
    type Item;
    fn items(self) -> Vec<Self::Item>;
}

/// A bare list. Items that the server failed to write are `null`, and left out.
impl<T: DeserializeOwned> Page for Option<Vec<Option<T>>> {
    type Item = T;
    fn items(self) -> Vec<T> {
        self.unwrap_or_default().into_iter().flatten().collect()
    }
}

impl Client {
    /// The items of a list up to `max`, over all its pages.
    ///
    /// Neither a short page nor the address in `Link` says where a list ends: the server may allow less per page than was
    /// asked for. What says it is `X-Total-Count`, else whether there is a next page, else an empty page.
    pub(crate) async fn pages<P: Page>(&self, call: &Call, max: usize) -> Result<Vec<P::Item>, Error> {
        let mut all = Vec::new();
        for number in 1..=PAGES_MAX {
            let (answer, items) = self.page::<P>(call, number).await?;
            let empty = items.is_empty();
            all.extend(items);
            if empty || is_last(&answer, all.len()) || all.len() >= max {
                break;
            }
        }
        all.truncate(max);
        Ok(all)
    }

    /// All statuses of a list, each once.
    ///
    /// The server orders them by nothing, so that one may come on two pages and another on none: a list with fewer of
    /// them than it announced is no answer.
    pub(crate) async fn complete<P>(&self, call: &Call) -> Result<Vec<CommitStatus>, Error>
    where
        P: Page<Item = CommitStatus>,
    {
        let mut all: BTreeMap<u64, CommitStatus> = BTreeMap::new();
        for number in 1..=PAGES_MAX {
            let (answer, items) = self.page::<P>(call, number).await?;
            let empty = items.is_empty();
            all.extend(items.into_iter().map(|status| (status.id, status)));
            if let Some(total) = answer.total.filter(|total| empty && (all.len() as u64) < *total) {
                let came = format!("a list of {} statuses that should be {total}", all.len());
                return Err(Error::unreadable(call, answer.status, came));
            }
            if empty || is_last(&answer, all.len()) {
                return Ok(all.into_values().collect());
            }
        }
        Err(Error::unreadable(call, 200, format!("a list of more than {PAGES_MAX} pages")))
    }

    async fn page<P: Page>(&self, call: &Call, number: u32) -> Result<(Answer, Vec<P::Item>), Error> {
        let page = call.clone().query("page", &number.to_string()).query("limit", &PAGE_LIMIT.to_string());
        let answer = self.request(page).await?;
        let items = answer.read::<P>()?.items();
        Ok((answer, items))
    }
}

/// Without any mark, only an empty page says that the one before it was the last.
fn is_last(answer: &Answer, seen: usize) -> bool {
    match answer.total {
        Some(total) => seen as u64 >= total,
        None => answer.more == Some(false),
    }
}
