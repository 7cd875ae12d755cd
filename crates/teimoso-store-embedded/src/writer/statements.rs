//! The statements of one transaction, each looked up once; absent: what they say.
//!
//! The connection's own cache is keyed by text: hashing a statement, taking it out and putting it back costs about as
//! much as binding it. A batch runs the same few hundreds of times.

use std::cell::RefCell;

use rusqlite::{CachedStatement, Connection, Params, Result};

/// What one transaction has executed so far, ready to be executed again.
pub(super) struct Statements<'a> {
    conn: &'a Connection,
    /// Few enough that a search by address is quicker than any hash.
    prepared: RefCell<Vec<(&'static str, CachedStatement<'a>)>>,
}

impl<'a> Statements<'a> {
    pub(super) fn new(conn: &'a Connection) -> Self {
        Self { conn, prepared: RefCell::default() }
    }

    pub(super) fn execute(&self, sql: &'static str, params: impl Params) -> Result<()> {
        let prepared = &mut *self.prepared.borrow_mut();
        let at = match prepared.iter().position(|(known, _)| std::ptr::eq(*known, sql)) {
            Some(at) => at,
            None => {
                prepared.push((sql, self.conn.prepare_cached(sql)?));
                prepared.len() - 1
            }
        };
        prepared[at].1.execute(params).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_prepared_once_and_binds_anew_each_time() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t(n)").unwrap();
        let statements = Statements::new(&conn);
        const INSERT: &str = "INSERT INTO t VALUES (?1)";
        for n in 1..=3 {
            statements.execute(INSERT, [n]).unwrap();
        }
        assert_eq!(statements.prepared.borrow().len(), 1);
        let sum: i64 = conn.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 6);
    }

    #[test]
    fn a_statement_that_failed_can_be_executed_again() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t(n UNIQUE)").unwrap();
        let statements = Statements::new(&conn);
        const INSERT: &str = "INSERT INTO t VALUES (?1)";
        assert!(statements.execute(INSERT, [1]).is_ok());
        assert!(statements.execute(INSERT, [1]).is_err());
        assert!(statements.execute(INSERT, [2]).is_ok());
    }
}
