//! What Redis answered, taken apart: anything of another shape than a script gives is one failure.

use bytes::Bytes;
use redis::Value;
use teimoso_delivery::store::{StoreError, StoreErrorKind};

/// The answer has another shape than the script gives it: not our script, or not Redis.
pub(crate) fn unexpected() -> StoreError {
    StoreError::new(StoreErrorKind::Failed, "redis answered something that our scripts never answer")
}

pub(crate) fn array(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(values) | Value::Set(values) => Ok(values),
        Value::Nil => Ok(Vec::new()),
        _ => Err(unexpected()),
    }
}

/// Exactly so many values.
pub(crate) fn exactly<const N: usize>(value: Value) -> Result<[Value; N], StoreError> {
    array(value)?.try_into().map_err(|_| unexpected())
}

/// Bytes; nothing stands for none.
pub(crate) fn bytes(value: Value) -> Result<Option<Bytes>, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into())),
        Value::Nil => Ok(None),
        _ => Err(unexpected()),
    }
}

/// Bytes that must be there.
pub(crate) fn some_bytes(value: Value) -> Result<Bytes, StoreError> {
    bytes(value)?.ok_or_else(unexpected)
}

/// A whole number, also as text; a score's fraction is dropped.
pub(crate) fn number(value: &Value) -> Result<Option<i64>, StoreError> {
    match value {
        Value::Int(number) => Ok(Some(*number)),
        Value::Nil => Ok(None),
        Value::Double(number) => Ok(Some(*number as i64)),
        Value::BulkString(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| unexpected())?;
            whole(text).map(Some)
        }
        _ => Err(unexpected()),
    }
}

fn whole(text: &str) -> Result<i64, StoreError> {
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number);
    }
    let number: f64 = text.parse().map_err(|_| unexpected())?;
    // Scores are instants and turns, far below 2^53; what is not saturates.
    Ok(number as i64)
}

/// A number that must be there.
pub(crate) fn some_number(value: &Value) -> Result<i64, StoreError> {
    number(value)?.ok_or_else(unexpected)
}

/// A number that is at least zero and fits.
pub(crate) fn natural<T: TryFrom<i64>>(value: &Value) -> Result<T, StoreError> {
    T::try_from(some_number(value)?).map_err(|_| unexpected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_number_in_every_spelling() {
        let text = |text: &str| Value::BulkString(text.into());
        for (value, expected) in [
            (Value::Int(3), Some(3)),
            (text("1700000000000"), Some(1_700_000_000_000)),
            (text("1.5e3"), Some(1_500)),
            (Value::Nil, None),
        ] {
            assert_eq!(number(&value), Ok(expected));
        }
        assert!(number(&text("x")).is_err() && number(&Value::Okay).is_err());
    }
}
