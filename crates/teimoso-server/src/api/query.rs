//! Query strings, read strictly. Deliberately absent: `+` for a space. No value holds one, and an
//! instant's `+02:00` must survive a caller that forgets to encode it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::problem::{At, Code, Problem};
use crate::nearest::suggestion;

/// The parameters of a request, each known and given once.
#[derive(Debug, Default)]
pub(crate) struct Query<'a>(Vec<(&'static str, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Reads `raw`, whose names must be among `known`.
    pub(crate) fn parse(raw: Option<&'a str>, known: &[&'static str]) -> Result<Self, Problem> {
        let mut query = Self::default();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name)?;
            let Some(name) = known.iter().copied().find(|known| *known == name) else {
                let hint = suggestion(&name, known);
                return Err(refuse(&name, Code::UnknownField, &format!("is unknown; {hint}")));
            };
            if query.get(name).is_some() {
                return Err(refuse(name, Code::DuplicateField, "is given more than once"));
            }
            query.0.push((name, decoded(value)?));
        }
        Ok(query)
    }

    /// The value of a parameter; one that is empty counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
        (!value.is_empty()).then_some(value)
    }
}

/// A refusal that names the parameter.
pub(crate) fn refuse(name: &str, code: Code, rule: &str) -> Problem {
    Problem::at(code, At::Parameter(name.to_owned()), format!("the parameter `{name}` {rule}"))
}

fn decoded(text: &str) -> Result<Cow<'_, str>, Problem> {
    percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| Problem::new(Code::MalformedRequest, "the query string is not UTF-8 once decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_a_plus_stays_one() {
        let query = Query::parse(
            Some("since=2026-01-01T00:00:00+02:00&type=a%2Eb&until="),
            &["since", "type", "until"],
        )
        .unwrap();
        assert_eq!(query.get("since"), Some("2026-01-01T00:00:00+02:00"));
        assert_eq!(query.get("type"), Some("a.b"));
        assert_eq!(query.get("until"), None);
    }

    #[test]
    fn a_wrong_name_finds_the_right_one() {
        let problem = Query::parse(Some("stat=dead"), &["state", "limit"]).unwrap_err();
        assert_eq!(problem.code(), Code::UnknownField);
        assert!(problem.to_string().contains("did you mean `state`?"));
        assert_eq!(
            Query::parse(Some("limit=1&limit=2"), &["limit"]).unwrap_err().code(),
            Code::DuplicateField
        );
        assert_eq!(Query::parse(Some("limit=%ff"), &["limit"]).unwrap_err().code(), Code::MalformedRequest);
    }
}
