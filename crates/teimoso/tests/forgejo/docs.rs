//! The page about Forgejo: every command in it is one that there is.

use clap::Parser;
use teimoso::args::Cli;

/// The words of a line of the shell, of which single quotes are all that the page uses.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        let mut pieces = if index % 2 == 1 { vec![part] } else { part.split(' ').collect() };
        let first = pieces.remove(0);
        words.last_mut().expect("one at least").push_str(first);
        words.extend(pieces.into_iter().map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_of_the_page_is_understood() {
    let page = include_str!("../../../../docs/forgejo.md").replace("\\\n", " ");
    let mut seen = 0;
    for line in page.lines().map(str::trim) {
        let Some(at) =
            line.find("teimoso forgejo ").filter(|_| !line.contains('`') && !line.starts_with('#'))
        else {
            continue;
        };
        let line = line[at..].split(" #").next().unwrap_or_default();
        let line = line.split(['|', '&', ';', '>']).next().unwrap_or_default();
        let words = words(
            &line
                .replace("${{ github.repository }}", "acme/site")
                .replace("${{ github.event.pull_request.number }}", "7"),
        );
        if let Err(error) = Cli::try_parse_from(&words) {
            panic!("{words:?}: {error}");
        }
        seen += 1;
    }
    assert!(seen >= 10, "the page has {seen} commands only");
}
