//! The results and the state of ray queries. A walk has no geometry, so an option or an assumption decides.

use std::collections::BTreeMap;

use litmus::closed_enum;

closed_enum! {
    /// The results of the ray queries of a walk, named as in `--rays`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RayResults {
        /// Every second ray hits: neighbouring invocations differ, and so do the rays of one invocation.
        #[default]
        Alternating = "alternating",
        /// Every ray hits a triangle.
        Hit = "hit",
        /// No ray hits anything.
        Miss = "miss",
    }
}

impl RayResults {
    pub fn describe(self) -> &'static str {
        match self {
            RayResults::Alternating => "every second ray hits",
            RayResults::Hit => "every ray hits",
            RayResults::Miss => "no ray hits",
        }
    }

    /// Returns true if the ray with this number of an invocation hits.
    pub fn hits(self, invocation: u32, ray: u32) -> bool {
        match self {
            RayResults::Alternating => (invocation ^ ray) & 1 == 1,
            RayResults::Hit => true,
            RayResults::Miss => false,
        }
    }
}

/// The state of a ray query object.
#[derive(Clone, Copy, Debug, Default)]
pub struct RayQueryState {
    /// True if a candidate was not yet returned.
    pub has_candidate: bool,
    /// The type of the committed intersection; 0 for none.
    pub committed: u64,
    /// The type that is committed at the end of the query.
    pub pending: u64,
}

/// The ray queries of an invocation.
#[derive(Clone, Debug, Default)]
pub struct RayQueries {
    /// The number of rays so far.
    pub rays: u32,
    /// The state of each object, by object number and offset.
    pub queries: BTreeMap<(u32, u64), RayQueryState>,
}
