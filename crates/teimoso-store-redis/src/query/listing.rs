//! Listings: newest first, in pages whose cursor is the last key looked at. A page bounds work, not only size.

use redis::{Pipeline, pipe};
use teimoso_delivery::model::{DeliveryState, Key, Millis};
use teimoso_delivery::store::{
    DeliveryFilter, DeliveryView, EventFilter, EventView, MAX_PAGE, Page, StoreError, StoreErrorKind,
};

use super::views;
use crate::codec::{EventHead, key_text, parse_key};
use crate::reply::{array, some_bytes, unexpected};
use crate::shared::Shared;

/// Rows looked at for one page.
const MOST_LOOKED_AT: usize = 1_000;

/// Where a page begins and must end.
struct Range {
    /// As Redis spells it: exclusive, or everything.
    before: String,
    from: String,
}

impl Range {
    /// `None` when there can be nothing.
    fn new(
        since: Option<Millis>,
        until: Option<Millis>,
        listing: char,
        cursor: Option<&str>,
    ) -> Result<Option<Self>, StoreError> {
        let lower = Key::first_at(since.unwrap_or_default());
        let last = cursor.map(|cursor| decode(listing, cursor)).transpose()?;
        let before = until.map(Key::first_at).into_iter().chain(last).min();
        if before.is_some_and(|before| before <= lower) {
            return Ok(None);
        }
        let before = before.map_or_else(|| "+".to_owned(), |key| format!("({}", key_text(key)));
        Ok(Some(Self { before, from: format!("[{}", key_text(lower)) }))
    }

    fn go_on_below(&mut self, key: Key) {
        self.before = format!("({}", key_text(key));
    }

    fn ask(&self, asked: &mut Pipeline, order: &str, most: usize) {
        asked
            .cmd("ZREVRANGEBYLEX")
            .arg(order)
            .arg(&self.before)
            .arg(&self.from)
            .arg("LIMIT")
            .arg(0)
            .arg(most);
    }
}

fn decode(listing: char, cursor: &str) -> Result<Key, StoreError> {
    let key = cursor.strip_prefix(listing).and_then(|text| parse_key(text.as_bytes()).ok());
    key.ok_or_else(|| {
        StoreError::new(StoreErrorKind::InvalidCursor, "the cursor is not one that this listing gave out")
    })
}

fn encode(listing: char, key: Key) -> String {
    format!("{listing}{}", key_text(key))
}

/// The next keys of several orders together, newest first.
async fn next_keys(
    shared: &Shared,
    orders: &[&str],
    range: &Range,
    most: usize,
) -> Result<Vec<Key>, StoreError> {
    let mut asked = pipe();
    orders.iter().for_each(|order| range.ask(&mut asked, &shared.keys.own(order), most));
    let mut keys = Vec::new();
    for found in shared.reads.pipeline(&asked).await? {
        for key in array(found)? {
            keys.push(parse_key(&some_bytes(key)?).map_err(|_| unexpected())?);
        }
    }
    keys.sort_unstable_by(|a, b| b.cmp(a));
    // One that moved from one order to the other between two answers is there twice.
    keys.dedup();
    keys.truncate(most);
    Ok(keys)
}

const fn end<T>() -> Page<T> {
    Page { data: Vec::new(), next_cursor: None }
}

fn orders_of(filter: &DeliveryFilter) -> &'static [&'static str] {
    match filter.state {
        Some(DeliveryState::Pending | DeliveryState::InFlight | DeliveryState::Scheduled) => &["order:alive"],
        Some(DeliveryState::Delivered) => &["order:delivered"],
        Some(DeliveryState::Dead) => &["order:dead"],
        Some(DeliveryState::Cancelled) => &["order:cancelled"],
        None if filter.reason.is_some() => &["order:dead"],
        None => &["order:alive", "order:delivered", "order:dead", "order:cancelled"],
    }
}

fn fits(filter: &DeliveryFilter, view: &DeliveryView, head: &EventHead) -> bool {
    filter.state.is_none_or(|state| view.state == state)
        && (filter.reason.is_none() || view.reason == filter.reason)
        && (filter.kind.is_none() || head.kind == filter.kind)
}

/// Whether the next step can bring anything the page still wants.
enum Step {
    More,
    Full(Key),
    End,
}

pub(crate) async fn deliveries(
    shared: &Shared,
    filter: DeliveryFilter,
) -> Result<Page<DeliveryView>, StoreError> {
    let Some(mut range) = Range::new(filter.since, filter.until, 'd', filter.cursor.as_deref())? else {
        return Ok(end());
    };
    let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
    let (mut data, mut looked) = (Vec::new(), 0);
    loop {
        let keys = next_keys(shared, orders_of(&filter), &range, limit).await?;
        let texts: Vec<String> = keys.iter().copied().map(key_text).collect();
        let mut step = if keys.len() < limit { Step::End } else { Step::More };
        for (key, view, head) in views::deliveries(shared, &texts).await? {
            if data.len() == limit {
                break;
            }
            if fits(&filter, &view, &head) {
                data.push(view);
            }
            if data.len() == limit && keys.last() != Some(&key) {
                step = Step::Full(key);
            }
        }
        looked += keys.len();
        match (step, keys.last()) {
            (Step::Full(key), _) => return Ok(Page { data, next_cursor: Some(encode('d', key)) }),
            (Step::More, Some(last)) if data.len() == limit || looked >= MOST_LOOKED_AT => {
                return Ok(Page { data, next_cursor: Some(encode('d', *last)) });
            }
            (Step::More, Some(last)) => range.go_on_below(*last),
            (Step::End, _) | (Step::More, None) => return Ok(Page { data, next_cursor: None }),
        }
    }
}

pub(crate) async fn events(shared: &Shared, filter: EventFilter) -> Result<Page<EventView>, StoreError> {
    let Some(mut range) = Range::new(filter.since, filter.until, 'e', filter.cursor.as_deref())? else {
        return Ok(end());
    };
    let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
    let (mut data, mut looked) = (Vec::new(), 0);
    loop {
        let keys = next_keys(shared, &["order:events"], &range, limit - data.len()).await?;
        let texts: Vec<String> = keys.iter().copied().map(key_text).collect();
        let wanted = limit - data.len();
        let found = views::events(shared, "events", &texts).await?;
        data.extend(
            found
                .into_iter()
                .map(|(_, view)| view)
                .filter(|view| filter.kind.is_none() || view.kind == filter.kind),
        );
        looked += keys.len();
        let Some(last) = keys.last().filter(|_| keys.len() == wanted) else {
            return Ok(Page { data, next_cursor: None });
        };
        if data.len() == limit || looked >= MOST_LOOKED_AT {
            return Ok(Page { data, next_cursor: Some(encode('e', *last)) });
        }
        range.go_on_below(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_leads_back_and_belongs_to_its_listing(raw in 0i64..1 << 60) {
            let key = Key::from_raw(raw).unwrap();
            let cursor = encode('d', key);
            prop_assert_eq!(decode('d', &cursor), Ok(key));
            prop_assert!(decode('e', &cursor).is_err());
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_empty() {
        let at = |ms| Some(Millis::new(ms));
        assert!(Range::new(at(5), at(5), 'd', None).is_ok_and(|range| range.is_none()));
        assert!(Range::new(at(5), at(6), 'd', None).is_ok_and(|range| range.is_some()));
    }

    #[test]
    fn pages_are_walked_below_the_last_key() {
        let mut range = Range::new(None, None, 'd', None).unwrap().unwrap();
        assert_eq!((range.before.as_str(), range.from.as_str()), ("+", "[000000000000000"));
        range.go_on_below(Key::first_at(Millis::new(1)));
        assert_eq!(range.before, "(000000000001000");
    }
}
