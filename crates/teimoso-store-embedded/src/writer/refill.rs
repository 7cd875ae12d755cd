//! Moving the horizon: reading on where a lane's due index in memory ends, between two commits.

use rusqlite::Result;
use teimoso_delivery::lanes::{Horizon, Thirst};
use teimoso_delivery::model::{Key, Millis};

use super::batch::{Batch, Effect};
use crate::rows;

/// Lanes read on in one commit: a crowd of lanes must not hold up the one writer.
const LANES_PER_COMMIT: usize = 64;

impl Batch<'_> {
    /// Reads on for every lane that runs dry. The rows of this very transaction are seen, and what it
    /// will push lies within the horizon it reads up to or is already there: a push is idempotent.
    pub(super) fn refill(&mut self) -> Result<()> {
        let thirsty = {
            let core = &mut *self.shared.core();
            let thirsty = core.lanes.take_thirsty(LANES_PER_COMMIT);
            core.refilling = !thirsty.is_empty();
            thirsty
        };
        // All of them are noted before the first is read: a failure asks for every one again.
        let first = self.effects.len();
        self.effects.extend(thirsty.into_iter().map(|thirst| Effect::Refill(thirst, Vec::new())));
        for effect in &mut self.effects[first..] {
            if let Effect::Refill(thirst, found) = effect {
                *found = read_on(self.conn, thirst)?;
            }
        }
        Ok(())
    }
}

const READ_ON: &str = "SELECT due, delivery FROM due WHERE lane = ?1 AND (due, delivery) > (?2, ?3)
    ORDER BY due, delivery LIMIT ?4";

/// The next `want` entries of a lane beyond its horizon, in order.
pub(crate) fn read_on(conn: &rusqlite::Connection, thirst: &Thirst<Key>) -> Result<Vec<(Millis, Key)>> {
    let (due, key) = match thirst.horizon {
        Horizon::All => return Ok(Vec::new()),
        Horizon::Nothing => (-1, -1),
        Horizon::UpTo(due, key) => (rows::raw_millis(due), key.raw()),
    };
    let want = i64::try_from(thirst.want).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(READ_ON)?;
    let found = select.query_map((thirst.lane.0, due, key, want), |row| {
        Ok((rows::millis(row.get(0)?), rows::key(row, 1)?))
    })?;
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refill_reads_only_what_it_takes() {
        let plan = crate::schema::plan(READ_ON);
        assert_eq!(plan, ["SEARCH due USING PRIMARY KEY (lane=? AND (due,delivery)>(?,?))"]);
    }
}
