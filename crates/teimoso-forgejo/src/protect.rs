//! Branch protection as it should be, in a file: what differs is shown and changed, what is not named stays; absent:
//! taking away rules that the file does not name.

use std::fmt;

use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::Error;
use crate::model::BranchProtection;
use crate::ops::RepoName;

/// One rule as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    name: String,
    fields: Map<String, Value>,
}

/// A file that is no list of rules; reads after the name of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRule(String);

/// What applying a rule changes.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleChange {
    /// Nothing.
    Same,
    /// There is no such rule: it is made.
    Create,
    /// These fields.
    Edit(Vec<Change>),
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name.
    pub field: String,
    /// As it is.
    pub from: Value,
    /// As it should be.
    pub to: Value,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Switch,
    Number,
    Text,
    Names,
}

/// The fields of a rule that can be set.
const FIELDS: [(&str, Kind); 23] = [
    ("apply_to_admins", Kind::Switch),
    ("approvals_whitelist_teams", Kind::Names),
    ("approvals_whitelist_username", Kind::Names),
    ("block_on_official_review_requests", Kind::Switch),
    ("block_on_outdated_branch", Kind::Switch),
    ("block_on_rejected_reviews", Kind::Switch),
    ("dismiss_stale_approvals", Kind::Switch),
    ("enable_approvals_whitelist", Kind::Switch),
    ("enable_merge_whitelist", Kind::Switch),
    ("enable_push", Kind::Switch),
    ("enable_push_whitelist", Kind::Switch),
    ("enable_status_check", Kind::Switch),
    ("ignore_stale_approvals", Kind::Switch),
    ("merge_whitelist_teams", Kind::Names),
    ("merge_whitelist_usernames", Kind::Names),
    ("protected_file_patterns", Kind::Text),
    ("push_whitelist_deploy_keys", Kind::Switch),
    ("push_whitelist_teams", Kind::Names),
    ("push_whitelist_usernames", Kind::Names),
    ("require_signed_commits", Kind::Switch),
    ("required_approvals", Kind::Number),
    ("status_check_contexts", Kind::Names),
    ("unprotected_file_patterns", Kind::Text),
];

/// What a rule has beside them, which nobody sets: a file that `view` wrote may hold it.
const NOT_SET: [&str; 3] = ["branch_name", "created_at", "updated_at"];

/// Reads a file: one rule, or a list of them, as JSON objects with a `rule_name`.
///
/// # Errors
///
/// It is something else, names a rule twice, or has a field that there is not or that holds something else.
pub fn rules_of(json: &[u8]) -> Result<Vec<Rule>, InvalidRule> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| InvalidRule(format!("is not JSON: {error}")))?;
    let values = match value {
        Value::Array(values) => values,
        one => vec![one],
    };
    let rules: Vec<Rule> = values.into_iter().map(Rule::of).collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = rules.iter().map(Rule::name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(InvalidRule(format!("has two rules `{}`", pair[0]))),
        None => Ok(rules),
    }
}

impl Rule {
    /// The branch or pattern that it is for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says, by field.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    fn of(value: Value) -> Result<Self, InvalidRule> {
        let Value::Object(mut fields) = value else {
            return Err(InvalidRule("must hold objects with a `rule_name`".to_owned()));
        };
        let name = match fields.remove("rule_name") {
            Some(Value::String(name)) if !matches!(name.trim(), "" | "." | "..") => name,
            _ => return Err(InvalidRule("has a rule without a `rule_name`".to_owned())),
        };
        fields.retain(|field, _| !NOT_SET.contains(&field.as_str()));
        for (field, value) in &fields {
            let known = FIELDS.iter().find(|(known, _)| known == field);
            let Some((_, kind)) = known else { return Err(unknown(&name, field)) };
            if !kind.takes(value) {
                return Err(InvalidRule(format!("rule `{name}`: `{field}` must be {}", kind.words())));
            }
        }
        Ok(Self { name, fields })
    }

    /// What would have to change about the rule that is there.
    #[must_use]
    pub fn changes(&self, is: Option<&BranchProtection>) -> RuleChange {
        let Some(is) = is else { return RuleChange::Create };
        let differs = |(field, to): (&String, &Value)| {
            let from = is.fields.get(field).cloned().unwrap_or(Value::Null);
            (!same(&from, to)).then(|| Change { field: field.clone(), from, to: to.clone() })
        };
        match self.fields.iter().filter_map(differs).collect::<Vec<_>>() {
            changes if changes.is_empty() => RuleChange::Same,
            changes => RuleChange::Edit(changes),
        }
    }
}

fn unknown(name: &str, field: &str) -> InvalidRule {
    let shares = |known: &&str| {
        let common = field.bytes().zip(known.bytes()).take_while(|(a, b)| a == b).count();
        let tail = field.bytes().rev().zip(known.bytes().rev()).take_while(|(a, b)| a == b).count();
        common + tail
    };
    let nearest = FIELDS.iter().map(|(known, _)| *known).max_by_key(shares).unwrap_or_default();
    InvalidRule(format!("rule `{name}`: there is no field `{field}`; the nearest is `{nearest}`"))
}

/// Whether two values say the same: names in any order, and nothing for an empty list, text, `false` or 0.
fn same(from: &Value, to: &Value) -> bool {
    match (from, to) {
        (Value::Array(from), Value::Array(to)) => {
            let sorted = |values: &[Value]| {
                let mut names: Vec<String> = values.iter().map(Value::to_string).collect();
                names.sort();
                names.dedup();
                names
            };
            sorted(from) == sorted(to)
        }
        (Value::Null, Value::Array(names)) => names.is_empty(),
        (Value::Null, Value::String(text)) => text.is_empty(),
        (Value::Null, Value::Bool(on)) => !on,
        (Value::Null, Value::Number(number)) => number.as_u64() == Some(0),
        _ => from == to,
    }
}

impl Kind {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Switch => value.is_boolean(),
            Self::Number => value.as_u64().is_some_and(|number| number <= 1_000),
            Self::Text => value.is_string(),
            Self::Names => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Switch => "true or false",
            Self::Number => "a number from 0 to 1000",
            Self::Text => "a text",
            Self::Names => "a list of texts",
        }
    }
}

impl Client {
    /// Makes a rule what it should be, unless `dry_run`, and says what that changes. Applied twice it changes nothing the
    /// second time.
    ///
    /// # Errors
    ///
    /// Any failure of a request; a success of the server's that left the rule as it was.
    pub async fn apply_rule(&self, repo: &RepoName, rule: &Rule, dry_run: bool) -> Result<RuleChange, Error> {
        let before = self.protection(repo, &rule.name).await?;
        let change = rule.changes(before.as_ref());
        if dry_run {
            return Ok(change);
        }
        match &change {
            RuleChange::Same => {}
            RuleChange::Create => self.create_rule(repo, rule).await?,
            RuleChange::Edit(changes) => self.edit_rule(repo, rule, changes).await?,
        }
        Ok(change)
    }

    async fn create_rule(&self, repo: &RepoName, rule: &Rule) -> Result<(), Error> {
        let error = match self.create_protection(repo, &rule.name, &rule.fields).await {
            Ok(_) => return Ok(()),
            Err(error) if error.may_have_taken_effect() => error,
            Err(error) => return Err(error),
        };
        // It may have been made: looked at, never made again.
        match self.protection(repo, &rule.name).await {
            Ok(Some(is)) => match rule.changes(Some(&is)) {
                RuleChange::Edit(changes) => self.edit_rule(repo, rule, &changes).await,
                RuleChange::Same | RuleChange::Create => Ok(()),
            },
            Ok(None) | Err(_) => Err(error),
        }
    }

    async fn edit_rule(&self, repo: &RepoName, rule: &Rule, changes: &[Change]) -> Result<(), Error> {
        let fields = changes.iter().map(|change| (change.field.clone(), change.to.clone())).collect();
        self.edit_protection(repo, &rule.name, &fields).await.map(drop)
    }
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidRule {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(json: &Value) -> Result<Rule, String> {
        let mut rules = rules_of(json.to_string().as_bytes()).map_err(|error| error.to_string())?;
        Ok(rules.remove(0))
    }

    #[test]
    fn only_what_is_named_and_differs_is_changed() {
        let is: BranchProtection = serde_json::from_value(json!({
            "rule_name": "main", "required_approvals": 1, "enable_push": false,
            "status_check_contexts": ["b", "a"], "protected_file_patterns": "", "created_at": "2026",
        }))
        .unwrap();
        let same = json!({
            "rule_name": "main", "required_approvals": 1, "status_check_contexts": ["a", "b"],
            "merge_whitelist_teams": [], "created_at": "1999",
        });
        assert_eq!(rule(&same).unwrap().changes(Some(&is)), RuleChange::Same);
        let other =
            rule(&json!({"rule_name": "main", "required_approvals": 2, "enable_push": false})).unwrap();
        let change = Change { field: "required_approvals".to_owned(), from: json!(1), to: json!(2) };
        assert_eq!(other.changes(Some(&is)), RuleChange::Edit(vec![change]));
        assert_eq!(other.changes(None), RuleChange::Create);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_in_a_sentence() {
        let refused = |json: Value| rule(&json).unwrap_err();
        assert_eq!(
            refused(json!({"rule_name": "main", "required_approval": 1})),
            "rule `main`: there is no field `required_approval`; the nearest is `required_approvals`"
        );
        assert_eq!(
            refused(json!({"rule_name": "main", "enable_push": "yes"})),
            "rule `main`: `enable_push` must be true or false"
        );
        assert_eq!(refused(json!({"enable_push": true})), "has a rule without a `rule_name`");
        assert_eq!(refused(json!([{"rule_name": "a"}, {"rule_name": "a"}])), "has two rules `a`");
        assert_eq!(refused(json!(["main"])), "must hold objects with a `rule_name`");
        assert!(rules_of(b"{").unwrap_err().to_string().starts_with("is not JSON: "));
    }
}
