//! A healthy lane beside lanes whose receiver never answers: what they cost it (G9).

use super::latency::{Paced, send};
use crate::event::{self, Events};
use crate::lab::{Lab, Server, Sink, Window};
use crate::report::{Ledger, Measure};
use crate::trouble::Result;

/// The healthy lane's rate, per second.
const RATE: u32 = 200;
/// Hanging lanes hold so many slots each before the healthy lane is measured: half of what they may.
const HELD: u64 = 8;
/// Where nobody answers: so many lanes.
const HANGING_LANES: [usize; 2] = [1, 64];

/// Alone, beside one hanging lane, beside 64.
///
/// # Errors
/// When an event of the healthy lane does not arrive.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let alone = healthy(lab, ledger, 0)?;
    for lanes in HANGING_LANES {
        let beside = healthy(lab, ledger, lanes)?;
        ledger.put_quietly(&name(lanes), Measure::OfAlone, beside / alone);
    }
    Ok(())
}

fn name(hanging: usize) -> String {
    if hanging == 0 { "a lane alone".to_owned() } else { format!("a lane beside {hanging} hanging") }
}

/// The healthy lane's p99 in milliseconds.
fn healthy(lab: &Lab, ledger: &mut Ledger, hanging: usize) -> Result<f64> {
    let (store, mut sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    hang(lab, &mut server, &mut sink, hanging)?;
    let events = Events::new(&event::urls(sink.address, "stamp", 1), lab.payload, None)?;
    let window = Window::open(&[&server.process, &sink.process])?;
    let paced = Paced { rate: RATE, seconds: lab.sizes.paced_seconds.div_ceil(2), events: &events };
    let (_, report) = send(&mut server, &mut sink, &paced)?;
    let spent = window.close()?;
    for (measure, rank) in [(Measure::P50, 0), (Measure::P99, 2)] {
        ledger.put(&name(hanging), measure, report.latency[rank] as f64 / 1e3, &spent);
    }
    Ok(report.latency[2] as f64 / 1e3)
}

/// Gives the hanging lanes their events and waits until they hold their slots.
fn hang(lab: &Lab, server: &mut Server, sink: &mut Sink, lanes: usize) -> Result<()> {
    if lanes == 0 {
        return Ok(());
    }
    let events = Events::new(&event::urls(sink.address, "hang", lanes), lab.payload, None)?;
    server.load(&events, lab.sizes.hanging, false)?;
    sink.wait(|report| report.hanging >= HELD * lanes as u64)?;
    Ok(())
}
