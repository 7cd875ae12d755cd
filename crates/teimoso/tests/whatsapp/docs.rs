//! The pages about WhatsApp: one for every provider, with its sources as the fixture has them; commands that there are;
//! and the list of providers as the binary prints it.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use teimoso::args::Cli;
use teimoso_whatsapp::testkit::Fixture;
use teimoso_whatsapp::{CallerId, PROVIDERS};

use crate::support::{ended, teimoso};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/whatsapp")
}

fn page(name: &str) -> String {
    let path = folder().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Without line ends, which stand where the page is wide enough.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_provider_has_a_page_that_says_how_it_is_set_up_and_what_is_verified() {
    let index = page("README");
    for adapter in PROVIDERS {
        let facts = adapter.facts();
        let (name, page) = (facts.name, flowing(&page(facts.name)));
        assert!(page.starts_with(&format!("# {} ", facts.title)), "{name} has another title");
        assert!(
            index.contains(&format!("| [{name}]({name}.md) | {} |", facts.title)),
            "{name} is not in the index"
        );
        let sources = Fixture::of(name).sources().to_owned();
        assert!(page.contains(&format!("Against: {}.", flowing(&sources))), "{name}: {sources}");
        assert!(page.contains("Not verified: "), "{name} does not say what is not verified");
        assert!(page.contains(&format!("TEIMOSO_WHATSAPP_PROVIDER={name}")), "{name}");
        let refused = page.contains("`--idempotent`, `--id` and `--reconcile` are refused");
        assert_eq!(refused, facts.caller_id == CallerId::None, "{name}: what is refused");
        assert_eq!(page.contains("**Lookup.**"), facts.lookup, "{name}: the lookup");
        assert_eq!(page.contains("CLIENT_TOKEN"), facts.client_token.is_some(), "{name}: the second token");
    }
}

#[test]
fn the_list_of_providers_is_the_one_that_the_binary_prints() {
    let list = ended(teimoso(&["whatsapp", "providers"]).output().expect("the binary runs"));
    let block = format!("<!-- teimoso whatsapp providers -->\n```text\n{}```\n", list.stdout);
    assert!(page("README").contains(&block), "docs/whatsapp/README.md should have:\n{block}");
}

#[test]
fn every_command_of_the_pages_is_understood() {
    let mut seen = 0;
    for entry in fs::read_dir(folder()).expect("the pages") {
        let text = fs::read_to_string(entry.expect("a page").path()).expect("text");
        for line in text.lines().filter_map(|line| line.strip_prefix("teimoso whatsapp ")) {
            let line = line.split(" #").next().unwrap_or_default();
            let words = line.split('\'').enumerate().flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            });
            let account = ["--provider".to_owned(), "waha".to_owned()];
            let all = ["teimoso".to_owned(), "whatsapp".to_owned()].into_iter().chain(words).chain(account);
            let all: Vec<String> = all.collect();
            assert!(Cli::try_parse_from(&all).is_ok(), "{all:?}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} commands were found");
}
