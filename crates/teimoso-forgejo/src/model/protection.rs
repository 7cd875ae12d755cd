//! Rules of branch protection as the API writes them; absent: what the fields mean, which the server knows.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One rule: its name, and every field as it came.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BranchProtection {
    /// The branch or pattern that it is for; its name too.
    pub rule_name: String,
    /// All other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}
