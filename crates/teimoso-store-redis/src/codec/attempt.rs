//! A settled attempt; of a success mostly numbers.

use std::time::Duration;

use bytes::Bytes;
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DecisionName, ErrorKind, Millis, PhaseTimings, ResponseRecord, fate_tag,
};
use teimoso_delivery::retry::WaitSource;

use super::bytes::put_counted;
use super::{Reader, Unreadable};

const VERSION: u8 = 1;

// Which optional parts follow, bit by bit.
const STATUS: u16 = 1;
const ERROR_KIND: u16 = 1 << 1;
const ERROR: u16 = 1 << 2;
const WAIT: u16 = 1 << 3;
const PEER: u16 = 1 << 4;
const DNS: u16 = 1 << 5;
const CONNECT: u16 = 1 << 6;
const TLS: u16 = 1 << 7;
const FIRST_BYTE: u16 = 1 << 8;
const RESPONSE: u16 = 1 << 9;
const TRUNCATED: u16 = 1 << 10;

fn micros(duration: Duration) -> [u8; 8] {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).to_be_bytes()
}

const fn wait_tag(source: WaitSource) -> u8 {
    match source {
        WaitSource::Schedule => 0,
        WaitSource::RetryAfter => 1,
    }
}

/// Writes an attempt.
pub(crate) fn encode_attempt(attempt: &AttemptRecord) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend(parts_of(attempt).to_be_bytes());
    out.extend(attempt.number.get().to_be_bytes());
    out.extend(attempt.started_at.get().to_be_bytes());
    out.extend([fate_tag::of(attempt.fate), attempt.decision.tag()]);
    out.extend(micros(attempt.timings.total));
    out.extend(attempt.status.into_iter().flat_map(u16::to_be_bytes));
    out.extend(attempt.error_kind.map(ErrorKind::tag));
    attempt.error.iter().for_each(|error| put_counted(&mut out, error.as_bytes()));
    if let Some((wait, source)) = attempt.wait {
        out.extend(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).to_be_bytes());
        out.push(wait_tag(source));
    }
    attempt.peer.iter().for_each(|peer| put_counted(&mut out, peer.to_string().as_bytes()));
    let timings = &attempt.timings;
    let phases = [timings.dns, timings.connect, timings.tls, timings.first_byte];
    phases.into_iter().flatten().for_each(|phase| out.extend(micros(phase)));
    if let Some(response) = attempt.response.as_deref() {
        put_counted(&mut out, response.headers.as_bytes());
        put_counted(&mut out, &response.body);
    }
    out
}

fn parts_of(attempt: &AttemptRecord) -> u16 {
    let timings = &attempt.timings;
    let truncated = attempt.response.as_deref().is_some_and(|response| response.truncated);
    let parts = [
        (attempt.status.is_some(), STATUS),
        (attempt.error_kind.is_some(), ERROR_KIND),
        (attempt.error.is_some(), ERROR),
        (attempt.wait.is_some(), WAIT),
        (attempt.peer.is_some(), PEER),
        (timings.dns.is_some(), DNS),
        (timings.connect.is_some(), CONNECT),
        (timings.tls.is_some(), TLS),
        (timings.first_byte.is_some(), FIRST_BYTE),
        (attempt.response.is_some(), RESPONSE),
        (truncated, TRUNCATED),
    ];
    parts.into_iter().filter(|(there, _)| *there).map(|(_, part)| part).sum()
}

/// Reads an attempt.
pub(crate) fn decode_attempt(bytes: &[u8]) -> Result<AttemptRecord, Unreadable> {
    let mut reader = Reader::new(bytes);
    reader.version(VERSION)?;
    let parts = reader.u16()?;
    let has = |part: u16| parts & part != 0;
    let number = AttemptNumber::after(reader.u32()?.saturating_sub(1));
    let started_at = Millis::new(reader.u64()?);
    let fate = fate_tag::to(reader.u8()?);
    let decision = DecisionName::from_tag(reader.u8()?).unwrap_or(DecisionName::GiveUp);
    let total = Duration::from_micros(reader.u64()?);
    let status = if has(STATUS) { Some(reader.u16()?) } else { None };
    let error_kind = if has(ERROR_KIND) { ErrorKind::from_tag(reader.u8()?) } else { None };
    let error = if has(ERROR) { Some(reader.text()?.into()) } else { None };
    let wait = if has(WAIT) { Some(wait(&mut reader)?) } else { None };
    let peer = if has(PEER) { reader.text()?.parse().ok() } else { None };
    let mut phase = |part| -> Result<Option<Duration>, Unreadable> {
        if has(part) { Ok(Some(Duration::from_micros(reader.u64()?))) } else { Ok(None) }
    };
    let (dns, connect, tls, first_byte) = (phase(DNS)?, phase(CONNECT)?, phase(TLS)?, phase(FIRST_BYTE)?);
    let timings = PhaseTimings { dns, connect, tls, first_byte, total };
    let response = if has(RESPONSE) { Some(response(&mut reader, has(TRUNCATED))?) } else { None };
    Ok(AttemptRecord {
        number,
        started_at,
        fate,
        status,
        error_kind,
        error,
        decision,
        wait,
        peer,
        timings,
        response,
    })
}

fn wait(reader: &mut Reader<'_>) -> Result<(Duration, WaitSource), Unreadable> {
    let wait = Duration::from_millis(reader.u64()?);
    Ok((wait, if reader.u8()? == 1 { WaitSource::RetryAfter } else { WaitSource::Schedule }))
}

fn response(reader: &mut Reader<'_>, truncated: bool) -> Result<Box<ResponseRecord>, Unreadable> {
    let headers = reader.text()?.into();
    let body = Bytes::copy_from_slice(reader.counted()?);
    Ok(Box::new(ResponseRecord { headers, body, truncated }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teimoso_delivery::retry::{Fate, Why};

    prop_compose! {
        fn any_attempt()(
            number in 0u32..u32::MAX, started in 0u64..1 << 47, status: Option<u16>, kind in 0u8..20,
            error: Option<String>, wait in proptest::option::of((0u64..1 << 40, any::<bool>())),
            port: Option<u16>, phases: [Option<u32>; 4], total: u32,
            response in proptest::option::of((any::<String>(), any::<Vec<u8>>(), any::<bool>())),
        ) -> AttemptRecord {
            let phase = |micros: Option<u32>| micros.map(|micros| Duration::from_micros(micros.into()));
            let source = |told| if told { WaitSource::RetryAfter } else { WaitSource::Schedule };
            AttemptRecord {
                number: AttemptNumber::after(number), started_at: Millis::new(started), status,
                fate: Fate::Ambiguous(Why::Reset), error_kind: ErrorKind::from_tag(kind),
                error: error.map(Into::into), decision: DecisionName::Retry,
                wait: wait.map(|(ms, told)| (Duration::from_millis(ms), source(told))),
                peer: port.map(|port| ([127, 0, 0, 1], port).into()),
                timings: PhaseTimings {
                    dns: phase(phases[0]), connect: phase(phases[1]), tls: phase(phases[2]),
                    first_byte: phase(phases[3]), total: Duration::from_micros(total.into()),
                },
                response: response.map(|(headers, body, truncated)| {
                    Box::new(ResponseRecord { headers: headers.into(), body: body.into(), truncated })
                }),
            }
        }
    }

    proptest! {
        #[test]
        fn an_attempt_leads_back(attempt in any_attempt()) {
            prop_assert_eq!(decode_attempt(&encode_attempt(&attempt)), Ok(attempt));
        }

        #[test]
        fn bytes_of_no_kind_are_unreadable_and_never_panic(bytes: Vec<u8>) {
            let read = decode_attempt(&bytes);
            prop_assert!(read.is_err() || bytes[0] == VERSION);
        }
    }
}
