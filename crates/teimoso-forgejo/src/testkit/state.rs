//! What the double knows; absent: how it is asked, which is in the routes.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::Forge;

/// The one token that it accepts.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";

/// Everything it knows; tests change it as they like.
#[derive(Debug)]
pub struct State {
    /// What `ROOT_URL` is set to, as in `Link` and `Location`.
    pub root_url: String,
    /// How many items a page may have at most.
    pub page_max: usize,
    /// Pull requests by number.
    pub pulls: BTreeMap<u64, PullState>,
    /// Statuses by commit, in the order in which they were reported.
    pub statuses: HashMap<String, Vec<Value>>,
    /// Issues by number, as the API writes them.
    pub issues: BTreeMap<u64, Value>,
    /// Labels of the repository.
    pub labels: Vec<Value>,
    /// Labels of the organisation; `None` if the owner is a user.
    pub org_labels: Option<Vec<Value>>,
    /// Comments by issue.
    pub comments: BTreeMap<u64, Vec<Value>>,
    /// Rules of branch protection by name.
    pub protections: BTreeMap<String, Map<String, Value>>,
    /// The former name of the repository, if it was renamed.
    pub former_name: Option<String>,
    /// The writes that were executed, in order.
    pub executed: Vec<String>,
    pub(super) last_id: u64,
}

/// A pull request.
#[derive(Debug, Clone)]
pub struct PullState {
    /// The title, which makes a draft if it begins with `WIP:`.
    pub title: String,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is merged.
    pub merged: bool,
    /// What Git says.
    pub mergeable: bool,
    /// The commit at its head.
    pub head: String,
    /// Who merged it.
    pub merged_by: Option<String>,
    /// Whether the API answers `null` for it, as it does when the database fails.
    pub null: bool,
}

impl State {
    pub(super) fn new(root_url: &str) -> Self {
        let label = |id: u64, name: &str| json!({"id": id, "name": name, "color": "00aabb", "description": "", "exclusive": true});
        let issue = json!({
            "number": 3, "state": "open", "title": "Broken", "body": "It is.", "labels": [], "assignees": null,
            "html_url": format!("{root_url}/acme/site/issues/3"), "user": {"login": "ana"},
        });
        Self {
            root_url: root_url.to_owned(),
            page_max: 50,
            pulls: BTreeMap::from([(7, PullState::new("Add it", Forge::HEAD))]),
            statuses: HashMap::new(),
            issues: BTreeMap::from([(3, issue)]),
            labels: vec![label(11, "status/ready"), label(12, "status/in-progress"), label(13, "bug")],
            org_labels: Some(vec![label(21, "status/done")]),
            comments: BTreeMap::new(),
            protections: BTreeMap::new(),
            former_name: None,
            executed: Vec::new(),
            last_id: 100,
        }
    }

    /// The pull request 7.
    ///
    /// # Panics
    ///
    /// It was taken away.
    pub fn pull(&mut self) -> &mut PullState {
        self.pulls.get_mut(&7).expect("it is there from the beginning")
    }

    /// Reports a status of the head of the pull request 7.
    pub fn report(&mut self, context: &str, state: &str) {
        let head = self.pull().head.clone();
        self.report_of(&head, context, state);
    }

    /// Reports a status of a commit.
    pub fn report_of(&mut self, commit: &str, context: &str, state: &str) {
        let rows = self.statuses.entry(commit.to_owned()).or_default();
        let id = rows.len() + 1;
        rows.push(json!({
            "id": id, "status": state, "context": context, "description": "", "created_at": "2026-01-01T00:00:00Z",
            "target_url": format!("/acme/site/actions/runs/{id}"), "url": "", "creator": null,
        }));
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl PullState {
    fn new(title: &str, head: &str) -> Self {
        Self {
            title: title.to_owned(),
            open: true,
            merged: false,
            mergeable: true,
            head: head.to_owned(),
            merged_by: None,
            null: false,
        }
    }

    /// Whether its title makes it a draft.
    #[must_use]
    pub fn draft(&self) -> bool {
        let title = self.title.to_ascii_lowercase();
        ["wip:", "[wip]"].iter().any(|prefix| title.starts_with(prefix))
    }
}
