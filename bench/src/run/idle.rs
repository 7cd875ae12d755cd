//! What waiting costs: CPU and wake-ups with events scheduled for later, and the memory of an empty server.

use std::time::Duration;

use crate::lab::{Lab, Parked, Sink, Window};
use crate::report::{Ledger, Measure};
use crate::trouble::Result;
use crate::{clock, procfs};

/// Checkpoints and connections come to rest in this time.
const REST: Duration = Duration::from_secs(3);

/// First empty, then with scheduled events.
///
/// # Errors
/// When the server does not take them.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let (store, sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    clock::pause(REST);
    let window = Window::open(&[&server.process])?;
    ledger.put("empty", Measure::Memory, server.process.memory()?, &window.close()?);

    let (count, seconds) = lab.sizes.idle;
    server.park(lab, &sink, count, Parked::Here)?;
    clock::pause(REST);
    let window = Window::open(&[&server.process])?;
    let before = procfs::threads(server.process.pid())?;
    clock::pause(Duration::from_secs(seconds));
    let after = procfs::threads(server.process.pid())?;
    let spent = window.close()?;
    let per_second = 1.0 / seconds as f64;
    ledger.put("idle", Measure::Core, (after.cpu - before.cpu) * per_second * 100.0, &spent);
    ledger.put("idle", Measure::WakeUps, (after.sleeps - before.sleeps) * per_second, &spent);
    ledger.put("idle", Measure::Memory, server.process.memory()?, &spent);
    Ok(())
}
