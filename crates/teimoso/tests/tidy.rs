//! What no compiler checks about the tree: who may depend on whom, that every file is reached, that time and chance
//! enter in one place, and that the documents name files which exist. Deliberately absent: style, which is rustfmt's
//! and clippy's.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use teimoso::exit::Exit;

/// Which crates of ours a crate may depend on, in any kind of dependency; no other arrows exist.
///
/// The decisions (`teimoso-retry`) are part of what `teimoso-delivery` speaks, so whoever sees the one sees the other.
const ARROWS: &[(&str, &[&str])] = &[
    ("teimoso-retry", &[]),
    // Servers for tests, which know nothing of us.
    ("redis-fixture", &[]),
    ("teimoso-http", &["teimoso-retry"]),
    ("teimoso-delivery", &["teimoso-retry"]),
    ("teimoso-store-embedded", &["teimoso-delivery"]),
    ("teimoso-store-redis", &["teimoso-delivery"]),
    ("teimoso-server", &["teimoso-delivery"]),
    ("teimoso-forgejo", &["teimoso-http"]),
    // Itself: its tests want its own test kit.
    ("teimoso-whatsapp", &["teimoso-http", "teimoso-whatsapp"]),
    (
        "teimoso",
        &[
            "teimoso-delivery",
            "teimoso-forgejo",
            "teimoso-http",
            "teimoso-retry",
            "teimoso-server",
            "teimoso-store-embedded",
            "teimoso-store-redis",
            "teimoso-whatsapp",
        ],
    ),
    // Stands beside the crates: it sees them all, and none of them sees it.
    (
        BENCH,
        &["teimoso-delivery", "teimoso-http", "teimoso-retry", "teimoso-server", "teimoso-store-embedded"],
    ),
    // Believes nothing that a user could not see.
    (CHAOS, &[]),
];

/// The packages that are no part of the product and live in folders of their own.
const BENCH: &str = "teimoso-bench";
const CHAOS: &str = "teimoso-chaos";

/// Folders that are no part of the source.
const NOT_OURS: [&str; 5] = [".git", "target", "teimoso-data", "mutants.out", "node_modules"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate is two folders below the workspace").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder`, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the tree can be listed") {
            let path = entry.expect("a folder of the tree can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = if folder.is_dir() { files(folder) } else { Vec::new() };
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found
}

fn crate_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates can be listed");
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the crates can be read").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// The packages of the workspace as cargo sees them.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("a workspace has packages").clone()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().expect("the field is a string")
}

fn dependencies(package: &Value) -> BTreeSet<&str> {
    let listed = package["dependencies"].as_array().expect("a package lists its dependencies");
    listed.iter().map(|dependency| text(dependency, "name")).collect()
}

/// Code lines with their numbers: comments say what they like.
fn code(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = source.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.starts_with("//"))
}

/// Where any of `words` stands in the code of `paths`.
fn mentions(paths: &[PathBuf], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        for (number, line) in code(&read(path)) {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{number}: {line}", relative(path)));
            }
        }
    }
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn crates_depend_on_each_other_only_along_the_allowed_arrows() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for package in packages() {
        let name = text(&package, "name");
        let Some(may) = allowed.get(name) else { panic!("{name} has no line in the table of arrows") };
        let ours = dependencies(&package).into_iter().filter(|other| other.starts_with("teimoso"));
        let forbidden: Vec<&str> = ours.filter(|other| !may.contains(other)).collect();
        assert_eq!(forbidden, [""; 0], "{name} must not depend on these");
    }
}

#[test]
fn a_crate_stands_in_the_folder_of_its_name() {
    let folders: Vec<String> = crate_folders()
        .iter()
        .map(|folder| folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let mut names: Vec<String> = packages().iter().map(|package| text(package, "name").to_owned()).collect();
    names.retain(|name| name != BENCH && name != CHAOS);
    names.sort();
    assert_eq!(names, folders);
}

#[test]
fn every_third_party_crate_is_named_once_with_its_reason_and_is_used() {
    let manifest = read(&root().join("Cargo.toml"));
    let named = section(&manifest, "[workspace.dependencies]");
    let used: BTreeSet<String> = packages()
        .iter()
        .flat_map(|package| dependencies(package).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for line in named {
        let name = line.split(['=', ' ']).next().unwrap_or_default();
        let reason = line.split_once(" # ").map_or("", |(_, reason)| reason.trim());
        assert!(line.contains("path = ") || !reason.is_empty(), "{name} stands there without a reason");
        assert!(used.contains(name), "{name} is named in the workspace and used by no crate");
    }
}

#[test]
fn crates_take_their_dependencies_from_the_workspace() {
    for folder in crate_folders() {
        let manifest = read(&folder.join("Cargo.toml"));
        for heading in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
            for line in section(&manifest, heading) {
                let inherited = line.contains("workspace = true");
                assert!(inherited, "{}: `{line}` names its own version", relative(&folder));
            }
        }
    }
}

/// The entries of a manifest's section.
fn section<'a>(manifest: &'a str, heading: &str) -> Vec<&'a str> {
    let after = manifest.lines().skip_while(|line| *line != heading).skip(1);
    let within = after.take_while(|line| !line.starts_with('['));
    within.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn every_source_file_is_reached_by_a_mod_line() {
    let mut reached = BTreeSet::new();
    for package in packages() {
        for target in package["targets"].as_array().expect("a package lists its targets") {
            reach(Path::new(text(target, "src_path")), true, &mut reached);
        }
    }
    let written = crate_folders().into_iter().flat_map(|folder| {
        ["src", "tests", "benches", "examples"].map(|part| rust_files(&folder.join(part))).concat()
    });
    let lost: Vec<String> =
        written.filter(|path| !reached.contains(path)).map(|path| relative(&path)).collect();
    assert_eq!(lost, [""; 0], "no module names these files: they are neither compiled nor tested");
}

fn reach(file: &Path, is_root: bool, reached: &mut BTreeSet<PathBuf>) {
    if !reached.insert(file.to_owned()) {
        return;
    }
    let beside = file.parent().expect("a file has a folder");
    let children =
        if is_root || file.ends_with("mod.rs") { beside.to_owned() } else { file.with_extension("") };
    let mut named_path = None;
    for (_, line) in code(&read(file)) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            named_path = Some(beside.join(path));
            continue;
        }
        let Some(name) = module_named_by(line) else { continue };
        let usual = [children.join(format!("{name}.rs")), children.join(name).join("mod.rs")];
        let candidates: Vec<PathBuf> = named_path.take().into_iter().chain(usual).collect();
        if let Some(child) = candidates.iter().find(|path| path.is_file()) {
            reach(child, false, reached);
        }
    }
}

fn module_named_by(line: &str) -> Option<&str> {
    let bare = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|public| line.strip_prefix(public));
    bare.unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

#[test]
fn every_module_begins_with_what_it_is_for() {
    for folder in crate_folders() {
        for path in rust_files(&folder.join("src")) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let of_tests =
                name.ends_with("tests") || path.components().any(|part| part.as_os_str() == "tests");
            assert!(
                of_tests || read(&path).starts_with("//! "),
                "{} does not say what it is for",
                relative(&path)
            );
        }
    }
}

#[test]
fn time_and_chance_are_arguments_but_for_their_owners() {
    let monotonic = ["Instant::now"];
    let others = [
        "SystemTime::now",
        "Timestamp::now",
        "tokio::time::sleep(",
        "fastrand::",
        "rand::",
        "Uuid::now_v7",
        "Uuid::new_v4",
    ];
    for folder in crate_folders() {
        let mut sources = rust_files(&folder.join("src"));
        sources.retain(|path| !OWNERS.contains(&relative(path).as_str()));
        assert_eq!(mentions(&sources, &others), [""; 0]);
        // The deadlines of sockets are measured by tokio's own clock.
        sources.retain(|path| !relative(path).starts_with("crates/teimoso-http/src/"));
        assert_eq!(mentions(&sources, &monotonic), [""; 0]);
    }
}

/// The real clocks and real chance: the binary's, and the client library's.
const OWNERS: [&str; 3] = [
    "crates/teimoso/src/clock.rs",
    "crates/teimoso/src/wiring/entropy.rs",
    "crates/teimoso-http/src/clock.rs",
];

#[test]
fn the_pure_rooms_know_no_world() {
    let worlds = [
        "tokio", "hyper", "http::", "rusqlite", "axum", "std::net", "std::fs", "std::io", "async ", ".await",
    ];
    for room in ["crates/teimoso-delivery/src/machine", "crates/teimoso-retry/src"] {
        assert_eq!(mentions(&rust_files(&root().join(room)), &worlds), [""; 0]);
    }
}

#[test]
fn routes_never_talk_to_a_store() {
    let routes = rust_files(&root().join("crates/teimoso-server/src/routes"));
    assert_eq!(mentions(&routes, &["dyn Store", ".store"]), [""; 0], "routes ask the App");
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let silenced: Vec<String> = ["#[", "#!["].iter().map(|open| format!("{open}allow(")).collect();
    let silenced: Vec<&str> = silenced.iter().map(String::as_str).collect();
    assert_eq!(mentions(&rust_files(&root().join("crates")), &silenced), [""; 0]);
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let homes = [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"]].map(|halves| halves.concat());
    let places: Vec<String> = homes.into_iter().chain(checkout_prefix()).collect();
    for path in files(&root()) {
        // What is no text names nothing.
        let Ok(content) = fs::read_to_string(&path) else { continue };
        for (index, line) in content.lines().enumerate() {
            let named = places.iter().find(|place| names_place(line, place));
            assert_eq!(named, None, "{}:{}", relative(&path), index + 1);
        }
    }
}

/// The top folder that this checkout is in, unless it is one that every machine has.
fn checkout_prefix() -> Option<String> {
    let root = root();
    let mut folders = root.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let (top, _) = (folders.next()?, folders.next()?);
    let everywhere = ["tmp", "var", "usr", "opt", "etc", "srv", "mnt", "src"].contains(&top.as_str());
    (!everywhere).then(|| format!("/{top}/"))
}

/// Whether a path that begins with `place` stands in the line; as a part of a longer path it is another place.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|char| char.is_alphanumeric() || "._-/~}".contains(char))
    })
}

#[test]
fn the_documents_name_files_that_exist() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/pt-BR/README.md"] {
        let folder = root().join(document).parent().map(Path::to_owned).unwrap_or_default();
        let content = read(&root().join(document));
        for path in content.split('`').skip(1).step_by(2).filter(|span| is_path(span)) {
            assert!(root().join(path).exists(), "{document} names `{path}`, which does not exist");
        }
        for link in content.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let ours = !link.is_empty() && !link.contains("://");
            assert!(!ours || folder.join(link).exists(), "{document} links to {link}, which does not exist");
        }
    }
}

fn is_path(span: &str) -> bool {
    let begins = ["crates/", "docs/", ".ci/", ".config/"].iter().any(|folder| span.starts_with(folder));
    begins && !span.contains([' ', '*', '<', '\n'])
}

#[test]
fn the_readme_lists_every_exit_code() {
    let readme = read(&root().join("README.md"));
    let codes = [
        Exit::OK,
        Exit::FAILURE,
        Exit::USAGE,
        Exit::NOT_FOUND,
        Exit::AUTHENTICATION,
        Exit::PARTLY_FAILED,
        Exit::EXHAUSTED,
        Exit::UNKNOWN_OUTCOME,
        Exit::PENDING,
        Exit::INTERRUPTED,
        Exit::TERMINATED,
    ];
    for code in codes {
        let row = format!("| {} | ", code.number());
        assert!(readme.contains(&row), "README.md has no row for exit code {}", code.number());
    }
}
