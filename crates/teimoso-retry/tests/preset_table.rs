//! The contract's preset table, written out as a table: every outcome × preset × method × mark × mode.
//!
//! Nothing here is derived from the crate. A cell of a client preset reads: GET, the other safe methods, unsafe methods
//! without a mark, unsafe methods marked as replay-safe. The columns of the engine hold for every method and mark.

use std::num::NonZeroU32;
use std::time::Duration;

use teimoso_retry::{
    Decision, Fate, GiveUp, Method, Mode, Nack, Outcome, Preset, Proof, Refusal, RetryPolicy, Try, Why,
    decide,
};

/// `D` done, `R` retry, `P` permanent status, `3` redirect, `G` endpoint gone, `A` ambiguous, `N` not replay-safe,
/// `T` certificate.
///
/// `once` columns are at-most-once, the bare ones at-least-once.
const TABLE: &str = "
outcome          | standard forgejo connector | webhook patient | webhook_once patient_once connector_once
never_sent       | RRRR     RRRR    RRNR      | R       R       | R            R            R
tls_certificate  | TTTT     RRRR    RRNR      | R       R       | R            R            R
not_processed    | RRRR     RRRR    RRNR      | R       R       | R            R            R
ambiguous        | RRAR     RRRR    RRAR      | R       R       | A            A            A
cancelled        | AAAA     AAAA    AAAA      | R       R       | A            A            A
body_lost/200    | RRNR     RNNN    RRNR      | D       D       | D            D            D
body_lost/302    | RRNR     RNNN    RRNR      | 3       3       | A            A            A
body_lost/404    | RRNR     RNNN    RRNR      | P       P       | P            P            P
body_lost/408    | RRNR     RNNN    RRNR      | P       R       | A            A            A
body_lost/410    | RRNR     RNNN    RRNR      | P       G       | P            G            P
body_lost/429    | RRNR     RNNN    RRNR      | R       R       | R            R            R
body_lost/503    | RRNR     RNNN    RRNR      | R       R       | A            A            A
none             | PPPP     PPPP    PPPP      | P       P       | A            A            A
0                | PPPP     PPPP    PPPP      | P       P       | A            A            A
100              | PPPP     PPPP    PPPP      | P       P       | A            A            A
101              | PPPP     PPPP    PPPP      | P       P       | A            A            A
199              | PPPP     PPPP    PPPP      | P       P       | A            A            A
200              | DDDD     DDDD    DDDD      | D       D       | D            D            D
204              | DDDD     DDDD    DDDD      | D       D       | D            D            D
299              | DDDD     DDDD    DDDD      | D       D       | D            D            D
300              | 3333     3333    3333      | 3       3       | A            A            A
302              | 3333     3333    3333      | 3       3       | A            A            A
304              | 3333     3333    3333      | 3       3       | A            A            A
399              | 3333     3333    3333      | 3       3       | A            A            A
400              | PPPP     PPPP    PPPP      | P       P       | P            P            P
401              | PPPP     PPPP    PPPP      | P       P       | P            P            P
403              | PPPP     PPPP    PPPP      | P       P       | P            P            P
404              | PPPP     PPPP    PPPP      | P       P       | P            P            P
408              | RRNR     PPPP    PPPP      | P       R       | A            A            A
409              | PPPP     PPPP    PPPP      | P       P       | P            P            P
410              | PPPP     PPPP    PPPP      | P       G       | P            G            P
413              | PPPP     PPPP    PPPP      | P       P       | P            P            P
421              | RRRR     PPPP    PPPP      | P       R       | R            R            R
422              | PPPP     PPPP    PPPP      | P       P       | P            P            P
425              | RRRR     PPPP    PPPP      | P       R       | R            R            R
429              | RRNR     PPPP    RRNR      | R       R       | R            R            R
499              | PPPP     PPPP    PPPP      | P       P       | P            P            P
500              | PPPP     PPPP    PPPP      | R       R       | A            A            A
501              | PPPP     PPPP    PPPP      | R       R       | A            A            A
502              | RRNR     RNNN    RRNR      | R       R       | A            A            A
503              | RRNR     RNNN    RRNR      | R       R       | A            A            A
504              | RRNR     RNNN    RRNR      | R       R       | A            A            A
505              | PPPP     PPPP    PPPP      | R       R       | A            A            A
599              | PPPP     PPPP    PPPP      | R       R       | A            A            A
600              | PPPP     PPPP    PPPP      | R       R       | A            A            A
999              | PPPP     PPPP    PPPP      | R       R       | A            A            A
";

const SAFE_BUT_GET: [Method; 3] = [Method::Head, Method::Options, Method::Trace];
const UNSAFE: [Method; 5] = [Method::Put, Method::Delete, Method::Post, Method::Patch, Method::Other];

fn letter(decision: Decision) -> char {
    match decision {
        Decision::Done => 'D',
        Decision::RetryIn { .. } => 'R',
        Decision::GiveUp(GiveUp::PermanentStatus) => 'P',
        Decision::GiveUp(GiveUp::Redirect) => '3',
        Decision::GiveUp(GiveUp::EndpointGone) => 'G',
        Decision::GiveUp(GiveUp::Ambiguous) => 'A',
        Decision::GiveUp(GiveUp::NotReplaySafe) => 'N',
        Decision::GiveUp(GiveUp::TlsCertificate) => 'T',
        Decision::GiveUp(other) => panic!("{} has no place in the table", other.name()),
    }
}

fn outcomes(name: &str) -> Vec<Outcome> {
    let of = |fate, status| Outcome { fate, status, hint: None };
    let silent = |fates: &[Fate]| fates.iter().map(|fate| of(*fate, None)).collect();
    match name {
        "never_sent" => silent(&[
            Fate::NeverSent(Proof::Dns),
            Fate::NeverSent(Proof::Connect),
            Fate::NeverSent(Proof::TlsHandshake),
            Fate::NeverSent(Proof::NoConnection),
            Fate::NeverSent(Proof::HandedBack),
            Fate::NeverSent(Proof::ZeroBytesWritten),
        ]),
        "tls_certificate" => silent(&[Fate::NeverSent(Proof::TlsCertificate)]),
        "not_processed" => {
            silent(&[Fate::NotProcessed(Nack::RefusedStream), Fate::NotProcessed(Nack::GoAway)])
        }
        "ambiguous" => silent(&[
            Fate::Ambiguous(Why::Timeout),
            Fate::Ambiguous(Why::Closed),
            Fate::Ambiguous(Why::Reset),
            Fate::Ambiguous(Why::Protocol),
            Fate::Ambiguous(Why::Other),
        ]),
        "cancelled" => silent(&[Fate::Ambiguous(Why::Cancelled)]),
        "none" => silent(&[Fate::Answered]),
        _ => match name.strip_prefix("body_lost/") {
            Some(status) => vec![of(Fate::BodyLost, Some(status.parse().expect("a status")))],
            None => vec![of(Fate::Answered, Some(name.parse().expect("a status")))],
        },
    }
}

fn first_try(method: Method, replay_safe: bool, mode: Mode) -> Try {
    Try { number: NonZeroU32::MIN, elapsed: Duration::ZERO, method, replay_safe, mode }
}

/// The letters of the four groups of a client's cell; every member of a group must agree.
fn client_cell(policy: &RetryPolicy, outcome: &Outcome) -> String {
    let both = [false, true];
    let groups: [Vec<(Method, bool)>; 4] = [
        both.map(|mark| (Method::Get, mark)).to_vec(),
        SAFE_BUT_GET.into_iter().flat_map(|method| both.map(|mark| (method, mark))).collect(),
        UNSAFE.map(|method| (method, false)).to_vec(),
        UNSAFE.map(|method| (method, true)).to_vec(),
    ];
    groups.iter().map(|group| agreed(policy, outcome, Mode::Client, group)).collect()
}

fn engine_cell(policy: &RetryPolicy, outcome: &Outcome, mode: Mode) -> String {
    let methods = [Method::Get].into_iter().chain(SAFE_BUT_GET).chain(UNSAFE);
    let all: Vec<_> = methods.flat_map(|method| [(method, false), (method, true)]).collect();
    agreed(policy, outcome, mode, &all).to_string()
}

fn agreed(policy: &RetryPolicy, outcome: &Outcome, mode: Mode, group: &[(Method, bool)]) -> char {
    let decided = |(method, mark): &(Method, bool)| {
        letter(decide(policy, &first_try(*method, *mark, mode), outcome, true, 7))
    };
    let first = decided(&group[0]);
    for member in group {
        assert_eq!(decided(member), first, "{member:?} differs from {:?} for {outcome:?}", group[0]);
    }
    first
}

fn cell(column: &str, outcome: &Outcome) -> String {
    let (preset, once) = match column.strip_suffix("_once") {
        Some(preset) => (preset, true),
        None => (column, false),
    };
    let preset: Preset = preset.parse().expect("a preset");
    let policy = RetryPolicy::preset(preset);
    match preset {
        _ if once => engine_cell(&policy, outcome, Mode::AtMostOnce),
        Preset::Webhook | Preset::Patient => engine_cell(&policy, outcome, Mode::AtLeastOnce),
        Preset::Standard | Preset::Forgejo | Preset::Connector => client_cell(&policy, outcome),
    }
}

#[test]
fn every_preset_decides_as_the_table_says() {
    let mut rows = TABLE
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        assert_eq!(row.len(), header.len(), "{row:?}");
        for (column, expected) in header.iter().zip(&row).skip(1) {
            for outcome in outcomes(row[0]) {
                let actual = cell(column, &outcome);
                if actual != *expected {
                    wrong.push(format!("{column} {}: {actual}, not {expected}: {outcome:?}", row[0]));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_refusal_is_final_for_every_preset_and_mode() {
    for preset in Preset::ALL {
        for mode in [Mode::AtLeastOnce, Mode::AtMostOnce, Mode::Client] {
            for refusal in [Refusal::InvalidDestination, Refusal::BlockedAddress, Refusal::TooLarge] {
                let outcome = Outcome { fate: Fate::Refused(refusal), status: None, hint: None };
                let decision = decide(&preset.into(), &first_try(Method::Get, true, mode), &outcome, true, 0);
                assert_eq!(decision, Decision::GiveUp(GiveUp::Refused(refusal)));
            }
        }
    }
}

#[test]
fn a_client_with_an_engine_preset_still_repeats_only_what_is_safe() {
    let outcome = |fate, status| Outcome { fate, status, hint: None };
    for preset in [Preset::Webhook, Preset::Patient] {
        let policy = RetryPolicy::preset(preset);
        assert_eq!(client_cell(&policy, &outcome(Fate::NeverSent(Proof::Dns), None)), "RRRR");
        assert_eq!(client_cell(&policy, &outcome(Fate::Ambiguous(Why::Timeout), None)), "RRAR");
        assert_eq!(client_cell(&policy, &outcome(Fate::Answered, Some(500))), "RRNR");
        assert_eq!(client_cell(&policy, &outcome(Fate::BodyLost, Some(200))), "DDDD");
    }
}

#[test]
fn the_engine_with_a_client_preset_takes_a_status_it_may_not_retry_as_final() {
    let outcome = Outcome { fate: Fate::Answered, status: Some(503), hint: None };
    let post = first_try(Method::Post, false, Mode::AtLeastOnce);
    let forgejo = decide(&Preset::Forgejo.into(), &post, &outcome, true, 0);
    assert_eq!(forgejo, Decision::GiveUp(GiveUp::PermanentStatus));
    assert_eq!(letter(decide(&Preset::Connector.into(), &post, &outcome, true, 0)), 'R');
}

#[test]
fn in_the_engine_a_lost_body_never_undoes_a_success() {
    let outcome = Outcome { fate: Fate::BodyLost, status: Some(202), hint: None };
    for preset in Preset::ALL {
        let post = first_try(Method::Post, false, Mode::AtLeastOnce);
        assert_eq!(decide(&preset.into(), &post, &outcome, true, 0), Decision::Done, "{preset}");
    }
}

#[test]
fn every_preset_has_the_figures_of_the_table() {
    let figures = |preset: Preset| {
        let policy = RetryPolicy::preset(preset);
        let waits: Vec<u128> = policy.schedule().skip(1).map(|step| step.wait.as_millis()).collect();
        let total = policy.give_up_after().map(|total| total.as_secs());
        (policy.max_attempts().get(), waits, policy.attempt_timeout().as_secs(), total, policy.breaker())
    };
    assert_eq!(figures(Preset::Standard), (3, vec![100, 200], 10, Some(30), false));
    assert_eq!(figures(Preset::Forgejo), (4, vec![300, 600, 1200], 15, None, false));
    assert_eq!(figures(Preset::Connector), (4, vec![300, 600, 1200], 15, None, false));
    assert_eq!(figures(Preset::Webhook), (5, vec![2000, 4000, 8000, 16000], 15, None, false));
    let minute = 60_000;
    let hour = 60 * minute;
    let waits = [5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
    let waits: Vec<u128> = [5000].into_iter().chain(waits).collect();
    assert_eq!(figures(Preset::Patient), (10, waits, 15, None, true));
    let caps = Preset::ALL.map(|preset| RetryPolicy::preset(preset).waits().cap().as_secs());
    assert_eq!(caps, [10, 10, 4, 300, 24 * 3600]);
    assert!(Preset::ALL.iter().all(|preset| RetryPolicy::preset(*preset).connect_timeout().as_secs() == 5));
}
