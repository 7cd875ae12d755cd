//! `docs/fault-matrix.md`: its tables are written from the data and compared with it; absent: its prose, which people
//! write around them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use teimoso_retry::Fate;

use crate::fault;
use crate::table::{Counts, ROWS, Row};

const BEGIN: &str = "<!-- from here on written by the tests: TEIMOSO_WRITE_DOCS=1 cargo test -p teimoso-http --test matrix -->\n";
const END: &str = "<!-- until here -->\n";

fn tables() -> String {
    let mut text = String::from("\n| fault | what happens | fate |\n|---|---|---|\n");
    for row in ROWS {
        let fates: Vec<String> = row.fates.iter().copied().map(spelt).collect();
        let story = fault(row.fault).story;
        let _ = writeln!(text, "| `{}` | {story} | {} |", row.fault, fates.join(", then "));
    }
    text.push_str(
        "\n| fault | `standard` GET | POST | POST, marked | `forgejo` GET | POST | POST, marked \
         | `connector` GET | POST | POST, marked |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Row { fault, standard, forgejo, connector, .. } in ROWS {
        let cells: Vec<String> = [standard, forgejo, connector].into_iter().flat_map(spelt_counts).collect();
        let _ = writeln!(text, "| `{fault}` | {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

fn spelt(fate: Fate) -> String {
    let detail = match fate {
        Fate::NeverSent(proof) => proof.name(),
        Fate::NotProcessed(nack) => nack.name(),
        Fate::Ambiguous(why) => why.name(),
        Fate::Refused(refusal) => refusal.name(),
        Fate::Answered | Fate::BodyLost => return format!("`{}`", fate.name()),
    };
    format!("`{}` ({detail})", fate.name())
}

/// A POST without a mark that may be executed twice stands out.
fn spelt_counts(counts: &[Counts; 3]) -> [String; 3] {
    let [get, post, marked] = counts.map(|(attempts, executions)| format!("{attempts} / {executions}"));
    [get, if counts[1].1 > 1 { format!("**{post}**") } else { post }, marked]
}

#[test]
fn the_document_shows_the_matrix_that_is_tested() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fault-matrix.md"));
    let document = fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let fresh = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("TEIMOSO_WRITE_DOCS").is_some() {
        fs::write(&path, &fresh).unwrap();
    } else {
        assert_eq!(document, fresh, "stale: run the tests with TEIMOSO_WRITE_DOCS=1");
    }
}
