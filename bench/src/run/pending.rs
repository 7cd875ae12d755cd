//! A backlog while many events are stored for later in other lanes: the rate, the memory, and how long a start takes
//! after the process was killed.

use super::drain::{Backlog, drain};
use crate::lab::{Lab, Parked, Sink};
use crate::report::{Ledger, Measure};
use crate::trouble::Result;

/// Every number of pending events; the larger ones in the first round alone.
///
/// # Errors
/// When a delivery fails or the server does not start again.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    for (index, pending) in lab.sizes.pending.iter().enumerate() {
        if index > 0 && ledger.round() > 0 {
            continue;
        }
        let scenario = format!("{} pending", in_words(*pending));
        let (empty, full) = if ledger.is_reference_first() {
            let empty = empty_rate(lab)?;
            (empty, full_rate(lab, ledger, &scenario, *pending)?)
        } else {
            let full = full_rate(lab, ledger, &scenario, *pending)?;
            (empty_rate(lab)?, full)
        };
        ledger.put_quietly(&scenario, Measure::OfEmpty, full / empty);
    }
    Ok(())
}

fn in_words(count: u64) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{} M", count / 1_000_000),
        1_000.. if count.is_multiple_of(1_000) => format!("{} k", count / 1_000),
        _ => count.to_string(),
    }
}

fn empty_rate(lab: &Lab) -> Result<f64> {
    let (store, mut sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    Ok(drain(lab, &mut server, &mut sink, &Backlog::embedded(lab.sizes.events))?.rate)
}

fn full_rate(lab: &Lab, ledger: &mut Ledger, scenario: &str, pending: u64) -> Result<f64> {
    let (store, mut sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    server.park(lab, &sink, pending, Parked::Elsewhere)?;
    let drained = drain(lab, &mut server, &mut sink, &Backlog::embedded(lab.sizes.events))?;
    ledger.put(scenario, Measure::Rate, drained.rate, &drained.spent);
    ledger.put(scenario, Measure::Memory, server.process.memory()?, &drained.spent);
    server.process.kill()?;
    let server = lab.server(store.path(), &[])?;
    ledger.put(scenario, Measure::Ready, server.ready_after.as_secs_f64(), &drained.spent);
    ledger.put(scenario, Measure::MemoryAfterStart, server.process.memory()?, &drained.spent);
    Ok(drained.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_have_short_names() {
        assert_eq!([5_000_000, 200_000, 1_234, 100].map(in_words), ["5 M", "200 k", "1234", "100"]);
    }
}
