//! A Forgejo to play with: prints its address and its token, and does what is typed; absent: what the tests assert.
//!
//! ```text
//! cargo run -p teimoso-forgejo --features testkit --example forge
//! report ci/build success        a status of the head of the pull request 7
//! push                           another head
//! fail POST /merge 1 lost|done   the first such request from here on: not executed, or executed; no answer
//! fail GET /pulls/7 5 502        five times an answer of a proxy
//! executed                       the writes so far
//! asked                          how many requests so far
//! ```

use std::io::BufRead;

use teimoso_forgejo::testkit::{Fault, Forge, TOKEN};

fn main() {
    let forge = Forge::start();
    println!("export TEIMOSO_FORGEJO_URL={} TEIMOSO_FORGEJO_TOKEN={TOKEN}", forge.url());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["report", context, state] => forge.change(|forge| forge.report(context, state)),
            ["push"] => forge.change(|forge| Forge::NEXT_HEAD.clone_into(&mut forge.pull().head)),
            ["fail", method, ends, times, how] => fail(&forge, method, ends, times, how),
            ["executed"] => println!("{:?}", forge.executed()),
            ["asked"] => println!("{}", forge.asked().len()),
            _ => println!(
                "report CONTEXT STATE, push, fail METHOD END TIMES lost|done|STATUS, executed, asked"
            ),
        }
    }
}

fn fail(forge: &Forge, method: &str, ends: &str, times: &str, how: &str) {
    let fault = match how {
        "lost" => Fault::Lost,
        "done" => Fault::DoneAndLost,
        status => Fault::proxy(status.parse().unwrap_or(502)),
    };
    let from = forge.count(method, ends) + 1;
    forge.fail(method.to_owned().leak(), ends.to_owned().leak(), from, times.parse().unwrap_or(1), fault);
}
