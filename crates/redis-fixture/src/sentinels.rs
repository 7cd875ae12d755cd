//! A master, its replica, and three sentinels that watch them.

use std::collections::HashMap;

use crate::server::{Fsync, Server, Start};
use crate::until;

/// What the sentinels call it.
const NAME: &str = "mestre";
/// After this much silence a server counts as gone, in ms.
const DOWN_AFTER_MS: u32 = 500;

/// A running group.
#[derive(Debug)]
pub struct Sentinels {
    /// The master it begins with, and the replica.
    pub servers: Vec<Server>,
    /// Who watch them.
    pub sentinels: Vec<Server>,
}

impl Sentinels {
    /// Starts them, and waits until each sentinel knows the others and the replica.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with_password(None)
    }

    /// The same, with a password that sentinels ask for.
    #[must_use]
    pub fn start_with_password(password: Option<&str>) -> Self {
        let master = Server::start(Fsync::EverySecond);
        let of = ["--appendonly", "yes", "--replicaof", "127.0.0.1", &master.port().to_string()];
        let replica = Server::start_with(&of);
        until("the replica is in step", || {
            replica.info("master_link_status").filter(|status| status == "up")
        });
        let sentinels = (0..3).map(|_| sentinel(master.port(), password)).collect();
        let group = Self { servers: vec![master, replica], sentinels };
        for sentinel in &group.sentinels {
            until("a sentinel knows the others and the replica", || {
                let mut raw = sentinel.raw();
                if let Some(password) = password {
                    redis::cmd("AUTH").arg(password).exec(&mut raw).expect("the password is right");
                }
                let asked = redis::cmd("SENTINEL").arg(&["MASTER", NAME]).query(&mut raw);
                let known: HashMap<String, String> = asked.expect("it watches the master");
                (known["num-other-sentinels"] == "2" && known["num-slaves"] == "1").then_some(())
            });
        }
        group
    }

    /// For the store.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(Server::address).collect();
        format!("redis+sentinel://{}/{NAME}/0", hosts.join(","))
    }

    /// Which of the servers is the master by its own word, when one is.
    #[must_use]
    pub fn master(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.info("role").is_some_and(|role| role == "master"))
    }

    /// Orders a change of master, and waits until the other one is it; which that is.
    pub fn fail_over(&self) -> usize {
        let before = self.master().expect("there is a master");
        until("a sentinel takes the order", || {
            redis::cmd("SENTINEL").arg(&["FAILOVER", NAME]).exec(&mut self.sentinels[0].raw()).ok()
        });
        let after = 1 - before;
        let other = &self.servers[after];
        until("the other one is master", || other.info("role").filter(|role| role == "master"));
        after
    }
}

fn sentinel(master: u16, password: Option<&str>) -> Server {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let guard = password.map(|password| format!("requirepass {password}\n")).unwrap_or_default();
    let arguments = vec!["{dir}/sentinel.conf".to_owned(), "--sentinel".to_owned()];
    Server::launch(Start { arguments, ready: "+monitor" }, directory, |directory, port| {
        let content = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\n{guard}\
             sentinel monitor {NAME} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {NAME} 3000\n",
            directory.path().display()
        );
        std::fs::write(directory.path().join("sentinel.conf"), content).expect("written");
    })
}
