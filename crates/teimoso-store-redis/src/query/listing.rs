//! Listings: newest first, in pages whose cursor is the last key looked at. A page bounds work, not only size.

use redis::cmd;
use teimoso_delivery::model::{DeliveryState, Key, Millis};
use teimoso_delivery::store::{
    DeliveryFilter, DeliveryView, EventFilter, EventView, MAX_PAGE, Page, StoreError, StoreErrorKind,
};

use super::views;
use crate::codec::{EventHead, key_text, parse_key};
use crate::public;
use crate::reply::{array, number, some_bytes, unexpected};
use crate::scripts::READ;
use crate::shared::Shared;

/// Rows looked at for one page.
const MOST_LOOKED_AT: usize = 1_000;

/// Where a page begins and must end.
struct Range {
    /// Exclusive; `None` is everything.
    before: Option<String>,
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
        Ok(Some(Self { before: before.map(key_text), from: key_text(lower) }))
    }

    fn go_on_below(&mut self, key: Key) {
        self.before = Some(key_text(key));
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

/// Where keys are listed.
enum Order {
    /// Every event, and so every delivery.
    Events,
    /// The deliveries of one kind.
    Set(&'static str),
}

/// The next keys, newest first. What is gone meanwhile may be among them.
async fn next_keys(
    shared: &Shared,
    order: &Order,
    range: &Range,
    most: usize,
) -> Result<Vec<Key>, StoreError> {
    let keys = match order {
        Order::Events => {
            let mut call = shared.call(&READ);
            call.arg("order").number(most as u64);
            call.arg(range.before.as_deref().unwrap_or("")).arg(range.from.as_str());
            shared.reads.call(&call).await?
        }
        Order::Set(name) => {
            let before = range.before.as_ref().map_or_else(|| "+".to_owned(), |key| format!("({key}"));
            let mut ask = cmd("ZREVRANGEBYLEX");
            ask.arg(shared.keys.own(name)).arg(before).arg(format!("[{}", range.from));
            ask.arg("LIMIT").arg(0).arg(most);
            shared.reads.command(&ask).await?
        }
    };
    let read = |key| parse_key(&some_bytes(key)?).map_err(|_| unexpected());
    array(keys)?.into_iter().map(read).collect()
}

const fn end<T>() -> Page<T> {
    Page { data: Vec::new(), next_cursor: None }
}

fn order_of(filter: &DeliveryFilter) -> Order {
    match filter.state {
        Some(DeliveryState::Scheduled) => Order::Set("order:tried"),
        Some(DeliveryState::Dead) => Order::Set("order:dead"),
        Some(DeliveryState::Cancelled) => Order::Set("order:cancelled"),
        None if filter.reason.is_some() => Order::Set("order:dead"),
        None | Some(DeliveryState::Pending | DeliveryState::InFlight | DeliveryState::Delivered) => {
            Order::Events
        }
    }
}

/// Whether nothing is in this state, so that nobody walks through everything to find that out.
async fn is_empty(shared: &Shared, state: Option<DeliveryState>) -> Result<bool, StoreError> {
    let Some(state) = state else { return Ok(false) };
    let mut ask = cmd("HGET");
    ask.arg(shared.keys.own("counts")).arg(state.name());
    Ok(number(&shared.reads.command(&ask).await?)?.unwrap_or(0) == 0)
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

/// What is kept here, and behind it what stands in the public keys.
pub(crate) async fn deliveries(
    shared: &Shared,
    filter: DeliveryFilter,
) -> Result<Page<DeliveryView>, StoreError> {
    if let Some(cursor) = filter.cursor.as_deref().and_then(public::Cursor::read) {
        return public::fill(shared, &filter, Some(cursor), end()).await;
    }
    let page = kept(shared, &filter).await?;
    if page.next_cursor.is_some() {
        return Ok(page);
    }
    public::fill(shared, &filter, None, page).await
}

async fn kept(shared: &Shared, filter: &DeliveryFilter) -> Result<Page<DeliveryView>, StoreError> {
    let Some(mut range) = Range::new(filter.since, filter.until, 'd', filter.cursor.as_deref())? else {
        return Ok(end());
    };
    let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
    let (order, mut data, mut looked) = (order_of(filter), Vec::new(), 0);
    if is_empty(shared, filter.state).await? {
        return Ok(end());
    }
    loop {
        let keys = next_keys(shared, &order, &range, limit).await?;
        let texts: Vec<String> = keys.iter().copied().map(key_text).collect();
        let mut step = if keys.len() < limit { Step::End } else { Step::More };
        for views::Delivery { key, view, head, .. } in views::deliveries(shared, &texts).await? {
            if data.len() == limit {
                break;
            }
            if fits(filter, &view, &head) {
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
        let keys = next_keys(shared, &Order::Events, &range, limit - data.len()).await?;
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
        assert_eq!((range.before.as_deref(), range.from.as_str()), (None, "000000000000000"));
        range.go_on_below(Key::first_at(Millis::new(1)));
        assert_eq!(range.before.as_deref(), Some("000000000001000"));
    }
}
