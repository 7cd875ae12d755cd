//! The bounds of lanes, each with a name and a default (G11). Deliberately absent: what enforces them.

/// Most lanes of implicit endpoints that are named by URL; later ones are named by origin.
pub const MAX_URL_LANES: usize = 10_000;
/// Most lanes in all (G11).
pub const MAX_LANES: usize = 100_000;

/// Bounds, each with a default (G11).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most deliveries of one lane in flight.
    pub per_lane_in_flight: u32,
    /// Due entries of one lane kept in memory (up to twice as many between two trims).
    pub memory_per_lane: usize,
    /// Due entries kept in memory in all; past it every lane keeps [`Limits::CROWDED_LANE`].
    pub memory_total: usize,
    /// See [`MAX_URL_LANES`].
    pub max_url_lanes: usize,
    /// See [`MAX_LANES`].
    pub max_lanes: usize,
}

impl Limits {
    /// Due entries a lane keeps when memory is short.
    pub const CROWDED_LANE: usize = 64;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_lane_in_flight: 16,
            memory_per_lane: 4_096,
            memory_total: 1 << 20,
            max_url_lanes: MAX_URL_LANES,
            max_lanes: MAX_LANES,
        }
    }
}
