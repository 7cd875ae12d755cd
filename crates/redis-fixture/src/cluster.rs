//! Three masters that share all slots, with a replica each where a failover is tested.

use redis::Value;

use crate::server::{READY, Server, Start};
use crate::{free_port, until};

/// Slots of a Cluster.
const SLOTS: u32 = 16_384;
const MASTERS: u32 = 3;
/// How long a node may be silent until it counts as failed, in ms.
const NODE_TIMEOUT_MS: &str = "1000";

/// A running Cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The three masters it begins with, then their replicas in the same order.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Three masters.
    #[must_use]
    pub fn start() -> Self {
        Self::of((0..MASTERS).map(|_| node()).collect())
    }

    /// Three masters with a replica each.
    #[must_use]
    pub fn start_replicated() -> Self {
        let mut cluster = Self::of((0..2 * MASTERS).map(|_| node()).collect());
        let (masters, replicas) = cluster.nodes.split_at_mut(MASTERS as usize);
        for (master, replica) in masters.iter().zip(replicas) {
            let id = my_id(master);
            until("a replica knows its master", || {
                redis::cmd("CLUSTER").arg(&["REPLICATE", &id]).exec(&mut replica.raw()).ok()
            });
        }
        for replica in &cluster.nodes[MASTERS as usize..] {
            until("a replica is in step", || {
                replica.info("master_link_status").filter(|status| status == "up")
            });
        }
        cluster
    }

    fn of(nodes: Vec<Server>) -> Self {
        for (index, node) in nodes.iter().enumerate() {
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        let width = SLOTS.div_ceil(MASTERS);
        for (index, node) in nodes.iter().enumerate().take(MASTERS as usize) {
            let (from, to) = (index as u32 * width, ((index as u32 + 1) * width).min(SLOTS) - 1);
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
        }
        let bus = bus_port(&nodes[0]);
        for node in &nodes[1..] {
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port().to_string(), &bus]);
        }
        for node in &nodes {
            until("every node knows every other, and the slots", || {
                let info = text(node.command(&["CLUSTER", "INFO"]));
                let known = format!("cluster_known_nodes:{}\r", nodes.len());
                (info.contains("cluster_state:ok") && info.contains(&known)).then_some(())
            });
        }
        Self { nodes }
    }

    /// For the store: all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(Server::address).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> i64 {
        let living = self.nodes.iter().find_map(Server::try_raw);
        let mut living = living.expect("a node lives");
        redis::cmd("CLUSTER").arg(&["KEYSLOT", key]).query(&mut living).expect("a slot")
    }

    /// Which of the nodes has the slot of a key, as those that live see it.
    #[must_use]
    pub fn owner(&self, key: &str) -> usize {
        let slot = self.slot(key);
        let living = self.nodes.iter().find_map(Server::try_raw);
        let slots: Vec<Vec<Value>> =
            redis::cmd("CLUSTER").arg("SLOTS").query(&mut living.expect("a node lives")).expect("a map");
        let of_slot = |range: &Vec<Value>| match range.as_slice() {
            [Value::Int(from), Value::Int(to), Value::Array(master), ..] if (*from..=*to).contains(&slot) => {
                match master.get(1) {
                    Some(Value::Int(port)) => Some(*port),
                    _ => None,
                }
            }
            _ => None,
        };
        let port = slots.iter().find_map(of_slot).expect("somebody has it");
        self.nodes.iter().position(|node| i64::from(node.port()) == port).expect("it is one of ours")
    }

    /// A connection to the node that has the slot of a key.
    #[must_use]
    pub fn raw(&self, key: &str) -> redis::Connection {
        self.nodes[self.owner(key)].raw()
    }

    /// Moves the slot of a key to another master while everybody goes on, key by key.
    pub fn move_slot(&self, key: &str, to: usize) {
        self.move_slot_slowly(key, to, || {});
    }

    /// The same, with something done after every few keys, while the slot is on two nodes.
    pub fn move_slot_slowly(&self, key: &str, to: usize, between: impl Fn()) {
        let (slot, from) = (self.slot(key).to_string(), self.owner(key));
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let (source_id, target_id) = (my_id(source), my_id(target));
        target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        let mut raw = source.raw();
        loop {
            let keys: Vec<String> =
                redis::cmd("CLUSTER").arg(&["GETKEYSINSLOT", &slot, "3"]).query(&mut raw).expect("keys");
            if keys.is_empty() {
                break;
            }
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(target.port()).arg("").arg(0).arg(5_000).arg("KEYS").arg(&keys);
            migrate.exec(&mut raw).expect("keys move");
            between();
        }
        for node in [target, source] {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
    }
}

fn node() -> Server {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Not port plus 10 000, which a free port may not leave room for.
    let bus = free_port().to_string();
    let arguments = "--port {port} --bind 127.0.0.1 --dir {dir} --appendonly yes --cluster-enabled yes";
    let mut arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    arguments.extend(["--save", "", "--cluster-node-timeout", NODE_TIMEOUT_MS].map(str::to_owned));
    arguments.extend(["--cluster-replica-validity-factor", "0", "--cluster-port", &bus].map(str::to_owned));
    Server::launch(Start { arguments, ready: READY }, directory, |_, _| {})
}

fn bus_port(node: &Server) -> String {
    let found: Vec<String> =
        redis::cmd("CONFIG").arg(&["GET", "cluster-port"]).query(&mut node.raw()).expect("a port");
    found.into_iter().nth(1).expect("it is configured")
}

fn my_id(node: &Server) -> String {
    text(node.command(&["CLUSTER", "MYID"]))
}

fn text(value: Value) -> String {
    redis::from_redis_value(value).expect("a text")
}
