//! Acceptance: many requests' events in one script, answered when they are as durable as was asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use redis::{Value, cmd};
use teimoso_delivery::model::{DeliveryState, EventId, Millis, NewEvent};
use teimoso_delivery::store::{Accepted, Rejection, StoreError, StoreErrorKind};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::codec::{self, named};
use crate::options::Durability;
use crate::reply::{array, exactly, some_bytes, some_number, unexpected};
use crate::scripts::{ACCEPT, Call};
use crate::shared::{Shared, bell};

/// Most events of one script.
const MOST_EVENTS: usize = 200;
/// Most payload bytes of one script, beyond its first event.
const MOST_BYTES: usize = 4 << 20;
/// How long a replica or a disk may take to confirm.
const CONFIRM: Duration = Duration::from_secs(2);

/// What one request is answered.
pub(crate) type Answers = Result<Vec<Result<Accepted, Rejection>>, StoreError>;

/// One request.
pub(crate) struct Op {
    pub(crate) batch: Vec<NewEvent>,
    pub(crate) reply: oneshot::Sender<Answers>,
}

/// Accepts until every sender is gone.
pub(crate) async fn run(shared: Arc<Shared>, mut ops: UnboundedReceiver<Op>) {
    let mut queue = VecDeque::new();
    while let Some(op) = ops.recv().await {
        queue.push_back(op);
        while let Ok(op) = ops.try_recv() {
            queue.push_back(op);
        }
        while !queue.is_empty() {
            let (batch, replies) = next_group(&mut queue);
            let answers = accept_all(&shared, batch).await;
            hand_out(answers, replies);
        }
    }
}

/// Requests that fit into one script, or one that does not.
fn next_group(queue: &mut VecDeque<Op>) -> (Vec<NewEvent>, Vec<(usize, oneshot::Sender<Answers>)>) {
    let (mut events, mut replies) = (Vec::new(), Vec::new());
    while let Some(op) = queue.pop_front() {
        if !events.is_empty() && events.len() + op.batch.len() > MOST_EVENTS {
            queue.push_front(op);
            break;
        }
        replies.push((op.batch.len(), op.reply));
        events.extend(op.batch);
    }
    (events, replies)
}

fn hand_out(answers: Answers, replies: Vec<(usize, oneshot::Sender<Answers>)>) {
    match answers {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for (count, reply) in replies {
                drop(reply.send(Ok(answers.by_ref().take(count).collect())));
            }
        }
        Err(error) => {
            for (_, reply) in replies {
                drop(reply.send(Err(error.clone())));
            }
        }
    }
}

async fn accept_all(shared: &Shared, batch: Vec<NewEvent>) -> Answers {
    shared.survey.sound()?;
    let mut answers = Vec::with_capacity(batch.len());
    let mut left = batch.as_slice();
    while !left.is_empty() {
        let (chunk, rest) = left.split_at(chunk_length(left));
        answers.extend(accept_chunk(shared, chunk).await?);
        left = rest;
    }
    confirm(shared).await?;
    Ok(answers)
}

/// How many events go into one script: at least one.
fn chunk_length(events: &[NewEvent]) -> usize {
    let mut bytes = 0;
    let fitting = events.iter().take(MOST_EVENTS).take_while(|event| {
        bytes += event.payload.len();
        bytes <= MOST_BYTES
    });
    fitting.count().max(1)
}

async fn accept_chunk(
    shared: &Shared,
    chunk: &[NewEvent],
) -> Result<Vec<Result<Accepted, Rejection>>, StoreError> {
    let mut call = shared.call(&ACCEPT);
    call.number(chunk.len() as u64).number(u8::from(shared.survey.found().carries_at_most_once()));
    add_all(&mut call, chunk);
    let [rung, answers] = exactly::<2>(shared.accepts.call(&call).await?)?;
    shared.wake.hear(bell(&rung)?);
    let answers = array(answers)?;
    if answers.len() != chunk.len() {
        return Err(unexpected());
    }
    chunk.iter().zip(answers).map(|(event, answer)| read(event, answer, shared)).collect()
}

/// Where an event goes; most events of a call share one with others.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Place<'a> {
    application: &'a str,
    lane: &'a str,
    origin: &'a str,
}

impl<'a> Place<'a> {
    fn of(event: &'a NewEvent) -> Self {
        let to = event.destination.as_ref();
        Self {
            application: event.application.as_str(),
            lane: to.map_or("", |to| &*to.lane),
            origin: to.map_or("", |to| &*to.origin),
        }
    }
}

/// The places, each once, then the events.
fn add_all(call: &mut Call, chunk: &[NewEvent]) {
    let (mut places, mut numbers) = (Vec::new(), HashMap::new());
    let mut place_of = Vec::with_capacity(chunk.len());
    for event in chunk {
        let place = Place::of(event);
        let number = *numbers.entry(place).or_insert_with(|| {
            places.push(place);
            places.len()
        });
        place_of.push(u16::try_from(number).unwrap_or(u16::MAX));
    }
    call.number(places.len() as u64);
    call.number(chunk.iter().filter(|event| codec::is_named(event)).count() as u64);
    for Place { application, lane, origin } in places {
        call.arg(application).arg(lane).arg(origin);
    }
    for (event, place) in chunk.iter().zip(place_of) {
        call.arg(codec::acceptance(event, place)).arg(codec::encode_event(event));
    }
}

/// A chunk has no more places than a number of two bytes can tell apart.
const _: () = assert!(MOST_EVENTS < u16::MAX as usize, "a place has a number");

fn read(event: &NewEvent, answer: Value, shared: &Shared) -> Result<Result<Accepted, Rejection>, StoreError> {
    let ids = shared.ids();
    let id =
        |named: Option<&str>, key| named.map_or_else(|| ids.event(key), |text| EventId::Named(text.into()));
    if let Value::BulkString(key) = &answer {
        let key = codec::parse_key(key).map_err(|_| unexpected())?;
        let deliveries = event.destination.iter().map(|_| (shared.delivery_id(key), DeliveryState::Pending));
        let accepted =
            Accepted { event: id(named(event), key), deliveries: deliveries.collect(), replayed: false };
        return Ok(Ok(accepted));
    }
    let mut values = array(answer)?.into_iter();
    let mut next = || values.next().ok_or_else(unexpected);
    match some_number(&next()?)? {
        1 => return Ok(Err(Rejection::IdTaken)),
        2 => return Ok(Err(Rejection::KeyReused)),
        3 => return Ok(Err(Rejection::ModeUnavailable)),
        4 => return Ok(Err(Rejection::TooManyLanes)),
        _ => {}
    }
    let key = codec::parse_key(&some_bytes(next()?)?).map_err(|_| unexpected())?;
    let named = some_bytes(next()?)?;
    let named = std::str::from_utf8(&named).map_err(|_| unexpected())?;
    let mut deliveries = Vec::new();
    if let Some(state) = values.next() {
        let state = u8::try_from(some_number(&state)?).ok().and_then(DeliveryState::from_tag);
        deliveries.push((shared.delivery_id(key), state.ok_or_else(unexpected)?));
    }
    let event = id(Some(named).filter(|named| !named.is_empty()), key);
    Ok(Ok(Accepted { event, deliveries, replayed: true }))
}

/// Waits for the level on the connection that wrote, and compares what came: never a 202 for less.
///
/// A repeated name must meet it again: what it answers may have been written by a request that failed here.
async fn confirm(shared: &Shared) -> Result<(), StoreError> {
    let not_met = |level: &str| {
        StoreError::new(
            StoreErrorKind::Busy,
            format!("the durability `{level}` was not met in {} s; try again", CONFIRM.as_secs()),
        )
    };
    let wait = CONFIRM.as_millis() as u64;
    match shared.durability {
        Durability::Fast => {}
        Durability::Replica => {
            let mut command = cmd("WAIT");
            command.arg(1).arg(wait);
            if some_number(&shared.accepts.command(&command).await?)? < 1 {
                return Err(not_met("replica"));
            }
        }
        // Its answer came after the fsync.
        Durability::Disk if shared.survey.found().syncs_always() => {}
        Durability::Disk => {
            let mut command = cmd("WAITAOF");
            command.arg(1).arg(0).arg(wait);
            let [local, _] = exactly::<2>(shared.accepts.command(&command).await?)?;
            if some_number(&local)? < 1 {
                return Err(not_met("disk"));
            }
        }
    }
    Ok(())
}

/// Instants of the future that a script may be given.
const _: () = assert!(Millis::MAX.get() < 1 << 53, "Lua's numbers hold every instant exactly");
