//! A provider's double to play with: prints how to reach it, and fails as it is told; absent: what the tests assert.
//!
//! ```text
//! cargo run -p teimoso-whatsapp --features testkit --example gateway -- waha
//! fail close                 reads the next request, executes it, and closes the connection
//! fail cut                   executes it, and breaks off in the middle of the answer
//! fail 400 Timed Out         answers it like this
//! executed                   how many messages it has sent
//! ```

use std::io::BufRead;

use teimoso_whatsapp::provider;
use teimoso_whatsapp::testkit::{Double, Fault, Reply, TOKEN};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "waha".to_owned());
    if let Err(unknown) = provider(&name) {
        return println!("{unknown}");
    }
    let double = Double::of(&name);
    println!("export TEIMOSO_WHATSAPP_PROVIDER={name} TEIMOSO_WHATSAPP_SERVER={}", double.url());
    println!("export TEIMOSO_WHATSAPP_TOKEN={TOKEN} TEIMOSO_WHATSAPP_CLIENT_TOKEN={TOKEN}-client");
    println!("export TEIMOSO_WHATSAPP_INSTANCE={}", double.fixture().instance().unwrap_or_default());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["fail", "close"] => double.fail([Fault::Close]),
            ["fail", "cut"] => double.fail([Fault::Cut]),
            ["fail", status, words @ ..] => double.fail([answer(status, &words.join(" "))]),
            ["executed"] => println!("{}", double.executed()),
            _ => println!("fail close|cut|STATUS WORDS, executed"),
        }
    }
}

fn answer(status: &str, words: &str) -> Fault {
    let body = serde_json::json!({"error": words}).to_string();
    Fault::Answer(Reply::json(status.parse().unwrap_or(500), &body))
}
