//! The fault matrix: every way in which an exchange goes wrong, under every preset for clients, with the fate of each
//! attempt and the number of times that the peer executed the request.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod cell;
mod document;
mod faults;
mod table;

use teimoso_retry::{Fate, Preset};

use cell::{Kind, Seen, play};
use faults::{FAULTS, Fault};
use table::{ROWS, Row};

/// Plays a row: nine cells.
fn check(name: &str) {
    let row = ROWS.iter().find(|row| row.fault == name).unwrap();
    let presets = [
        (Preset::Standard, &row.standard),
        (Preset::Forgejo, &row.forgejo),
        (Preset::Connector, &row.connector),
    ];
    for (preset, counts) in presets {
        for (kind, (attempts, executions)) in Kind::ALL.into_iter().zip(*counts) {
            let seen = play(fault(name), preset, kind);
            assert_eq!(
                (&seen.fates, seen.tally.executions),
                (&fates(row, attempts), executions),
                "{name} × {preset} × {kind:?}"
            );
            assert_honest(&seen, kind);
        }
    }
}

/// The fault of this name.
fn fault(name: &str) -> &'static Fault {
    FAULTS.iter().find(|fault| fault.name == name).unwrap()
}

/// The fates of so many attempts.
fn fates(row: &Row, attempts: usize) -> Vec<Fate> {
    let last = row.fates.last();
    row.fates.iter().chain(last.into_iter().cycle()).copied().take(attempts).collect()
}

/// The trace shows every request that the peer saw, and whoever is told that nothing happened is told the truth.
fn assert_honest(seen: &Seen, kind: Kind) {
    if let Some(arrivals) = seen.tally.arrivals {
        assert_eq!(arrivals, seen.attempts_here, "{kind:?}: {seen:?}");
    }
    if kind != Kind::Get && seen.may_have_taken_effect == Some(false) {
        assert_eq!(seen.tally.executions, 0, "{kind:?}: {seen:?}");
    }
}

/// One test for each row, so that each fails alone.
macro_rules! rows {
    ($($fault:ident)*) => {
        $(
            #[test]
            fn $fault() {
                check(stringify!($fault));
            }
        )*

        #[test]
        fn every_fault_has_its_row_and_its_test() {
            let faults: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
            let rows: Vec<&str> = ROWS.iter().map(|row| row.fault).collect();
            assert_eq!(rows, faults);
            assert_eq!(vec![$(stringify!($fault)),*], faults);
        }
    };
}

rows! {
    dns_failure
    dns_silence
    refused
    tls_failure
    tls_certificate
    fin_before_ready
    fin_unread
    fin_after_read
    rst_after_read
    silence
    partial_status_line
    continue_then_fin
    garbage
    idle_fin
    idle_408
    pending_fin
    pending_rst
    reused_fin
    upload_rst
    upload_503
    status_503
    body_cut_by_length
    body_cut_by_chunk
    body_cut_by_rst
    body_cut_unframed
    h2_refused_stream
    h2_internal_error
    h2_goaway_below
    h2_goaway_above
    h2_head_then_rst
    h2_body_cut_by_rst
    redirect_refused
}

/// S1.2 accepts the risk of a doubled write; the other presets never take it.
#[test]
fn a_post_without_a_mark_is_executed_once_at_most_unless_the_preset_accepts_more() {
    for row in ROWS {
        let [standard, connector] = [row.standard, row.connector].map(|[_, (_, executions), _]| executions);
        assert!(standard <= 1 && connector <= 1, "{}", row.fault);
    }
}

/// What is proved never to have arrived was never executed: otherwise the proof would be none.
#[test]
fn what_is_proved_unsent_or_unprocessed_was_not_executed() {
    for row in ROWS {
        let proved = |fate: &Fate| matches!(fate, Fate::NeverSent(_) | Fate::NotProcessed(_));
        if row.fates.iter().all(proved) {
            let cells = [row.standard, row.forgejo, row.connector].concat();
            assert!(cells.iter().all(|(_, executions)| *executions == 0), "{}", row.fault);
        }
    }
}
