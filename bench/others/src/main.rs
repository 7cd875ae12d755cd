//! Plays the fault matrix against other clients that retry, and prints how often the peer saw one POST and how often
//! it executed it; absent: any judgement, and any mark that would allow a repetition.
//!
//! The peers are those of our own tests. Each client is allowed three retries, and gets a fresh peer and a runtime of
//! its own for each fault.

mod clients;
#[expect(dead_code, reason = "the stories are for the document")]
#[path = "../../../crates/teimoso-http/tests/matrix/faults/mod.rs"]
mod faults;

use clients::CLIENTS;
use faults::{FAULTS, Fault, Idle, Peer, Tally};

fn main() {
    let installed = rustls::crypto::ring::default_provider().install_default();
    assert!(installed.is_ok(), "nobody else chose a provider");
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    println!("| fault | {} |", names.join(" | "));
    println!("|---{}|", "|---:".repeat(names.len()));
    for fault in FAULTS {
        let tallies = CLIENTS.iter().map(|client| shown(tally(fault, client.connect)));
        println!("| `{}` | {} |", fault.name, tallies.collect::<Vec<_>>().join(" | "));
    }
}

/// What a peer with this fault counts of one POST.
fn tally(fault: &'static Fault, connect: clients::Connect) -> Tally {
    let peer = Peer::start(fault);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(fault, &peer);
        if fault.idle != Idle::Fresh {
            client.get(&peer.url()).await;
            settle().await;
            match fault.idle {
                Idle::Fresh | Idle::Kept => peer.forget(),
                Idle::SpoiltUnseen => peer.spoil(),
                Idle::SpoiltSeen => {
                    peer.spoil();
                    settle().await;
                }
            }
        }
        client.post(&peer.url(), body(fault)).await;
    });
    drop(runtime);
    peer.tally()
}

/// Gives background tasks every chance to see what has happened to their sockets.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn body(fault: &Fault) -> Vec<u8> {
    if fault.uploads { vec![b'x'; 8 * 1024 * 1024] } else { b"payload".to_vec() }
}

/// Arrivals and executions; what was executed more than once stands out.
fn shown(Tally { arrivals, executions }: Tally) -> String {
    let Some(arrivals) = arrivals else { return "–".to_owned() };
    let counts = format!("{arrivals} / {executions}");
    if executions > 1 { format!("**{counts}**") } else { counts }
}
