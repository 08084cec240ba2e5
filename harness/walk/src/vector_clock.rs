//! A persistent vector clock: a copy-on-write radix tree from invocation to timestamp.
//!
//! Most clocks differ from a predecessor in one component, so they share all other nodes. This keeps a lock
//! that a million invocations take in turn affordable. A join allocates only where neither side dominates.

use std::ops::Range;
use std::rc::Rc;

/// Entries of a leaf and children of an inner node; both take about the same memory.
const LEAF_SIZE: usize = 32;
const FANOUT: usize = 16;

/// A map from invocation to timestamp with 0 as the default.
#[derive(Clone, Debug, Default)]
pub struct VectorClock {
    root: Subtree,
    /// Inner levels above the leaves.
    height: u32,
}

/// A subtree; `None` if all its timestamps are 0.
type Subtree = Option<Rc<ClockNode>>;

#[derive(Clone, Debug)]
enum ClockNode {
    Leaf([u32; LEAF_SIZE]),
    Inner([Subtree; FANOUT]),
}

/// Returns how many invocations a subtree of `height` covers.
fn subtree_capacity(height: u32) -> u64 {
    (LEAF_SIZE as u64).saturating_mul((FANOUT as u64).saturating_pow(height))
}

/// Returns the child of a node that covers `number`, and the index within that child.
fn child_index(number: u32, height: u32) -> (usize, u32) {
    // A child covers fewer than 2^32 numbers, so the cast is lossless.
    let room = subtree_capacity(height - 1) as u32;
    ((number / room) as usize % FANOUT, number % room)
}

impl VectorClock {
    /// Returns true if no component is set.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Returns true if both share one tree; false proves nothing.
    pub fn ptr_eq(&self, other: &VectorClock) -> bool {
        self.height == other.height && ptr_eq_subtrees(&self.root, &other.root)
    }

    /// Returns the component of an invocation, 0 if none is set.
    pub fn timestamp_of(&self, number: u32) -> u32 {
        let (mut part, mut height, mut at) = (&self.root, self.height, number);
        // The tree grows on demand, so numbers beyond it have never been advanced.
        if u64::from(number) >= subtree_capacity(height) {
            return 0;
        }
        loop {
            match part.as_deref() {
                None => return 0,
                Some(ClockNode::Leaf(times)) => return times.get(at as usize).copied().unwrap_or(0),
                Some(ClockNode::Inner(parts)) => {
                    let (which, rest) = child_index(at, height);
                    (part, height, at) = (&parts[which], height - 1, rest);
                }
            }
        }
    }

    /// Raises the component of an invocation to at least this time.
    pub fn advance_to(&mut self, number: u32, time: u32) {
        if self.timestamp_of(number) >= time {
            return;
        }
        while u64::from(number) >= subtree_capacity(self.height) {
            self.grow_height();
        }
        advance_subtree(&mut self.root, self.height, number, time);
    }

    /// Adds a level above the root.
    fn grow_height(&mut self) {
        self.height += 1;
        if self.root.is_some() {
            let mut parts = [const { None }; FANOUT];
            // The old tree covers the lowest numbers, so it becomes the first child.
            parts[0] = self.root.take();
            self.root = Some(Rc::new(ClockNode::Inner(parts)));
        }
    }

    /// Returns a copy of at least `height` levels.
    fn with_height(&self, height: u32) -> VectorClock {
        let mut grown = self.clone();
        while grown.height < height {
            grown.grow_height();
        }
        grown
    }

    /// Returns the pointwise maximum, reusing a side that dominates.
    pub fn joined_with(&self, other: &VectorClock) -> VectorClock {
        // Returning an operand keeps the sharing, which later joins and comparisons detect by
        // pointer.
        if other.is_empty() || self.ptr_eq(other) {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let height = self.height.max(other.height);
        VectorClock {
            root: join_subtrees(&self.with_height(height).root, &other.with_height(height).root),
            height,
        }
    }

    /// Returns true if every timestamp is at least the other's.
    pub fn is_at_least(&self, other: &VectorClock) -> bool {
        let height = self.height.max(other.height);
        other.is_empty()
            || subtree_is_at_least(&self.with_height(height).root, &other.with_height(height).root)
    }

    /// Returns the timestamps of `first..end`, with 0 elsewhere.
    pub fn restrict_to(&self, first: u32, end: u32) -> VectorClock {
        VectorClock {
            root: restrict_subtree(&self.root, self.height, 0, &(first.into()..end.into())),
            height: self.height,
        }
    }
}

fn ptr_eq_subtrees(one: &Subtree, other: &Subtree) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn advance_subtree(part: &mut Subtree, height: u32, number: u32, time: u32) {
    let node = part.get_or_insert_with(|| {
        Rc::new(match height {
            0 => ClockNode::Leaf([0; LEAF_SIZE]),
            _ => ClockNode::Inner([const { None }; FANOUT]),
        })
    });
    // Copies only the nodes on this path that another clock shares.
    match Rc::make_mut(node) {
        ClockNode::Leaf(times) => times[number as usize % LEAF_SIZE] = time,
        ClockNode::Inner(parts) => {
            let (which, rest) = child_index(number, height);
            advance_subtree(&mut parts[which], height - 1, rest, time);
        }
    }
}

fn join_subtrees(one: &Subtree, other: &Subtree) -> Subtree {
    let (Some(mine), Some(theirs)) = (one, other) else { return one.clone().or_else(|| other.clone()) };
    if Rc::ptr_eq(mine, theirs) {
        return one.clone();
    }
    match (&**mine, &**theirs) {
        (ClockNode::Leaf(mine), ClockNode::Leaf(theirs)) => {
            let both = std::array::from_fn(|at| mine[at].max(theirs[at]));
            // If one side dominates, its node is reused: no allocation, and the next comparison is
            // one of pointers.
            match () {
                () if both == *mine => one.clone(),
                () if both == *theirs => other.clone(),
                () => Some(Rc::new(ClockNode::Leaf(both))),
            }
        }
        (ClockNode::Inner(mine), ClockNode::Inner(theirs)) => {
            let both: [Subtree; FANOUT] = std::array::from_fn(|at| join_subtrees(&mine[at], &theirs[at]));
            let same = |parts: &[Subtree; FANOUT]| {
                both.iter().zip(parts).all(|(one, other)| ptr_eq_subtrees(one, other))
            };
            match () {
                () if same(mine) => one.clone(),
                () if same(theirs) => other.clone(),
                () => Some(Rc::new(ClockNode::Inner(both))),
            }
        }
        // Unreachable: both subtrees have the same height.
        _ => one.clone(),
    }
}

fn subtree_is_at_least(one: &Subtree, other: &Subtree) -> bool {
    let (mine, theirs) = match (one, other) {
        (_, None) => return true,
        (None, Some(_)) => return false,
        (Some(mine), Some(theirs)) => (mine, theirs),
    };
    Rc::ptr_eq(mine, theirs)
        || match (&**mine, &**theirs) {
            (ClockNode::Leaf(mine), ClockNode::Leaf(theirs)) => {
                mine.iter().zip(theirs).all(|(mine, theirs)| mine >= theirs)
            }
            (ClockNode::Inner(mine), ClockNode::Inner(theirs)) => {
                mine.iter().zip(theirs).all(|(mine, theirs)| subtree_is_at_least(mine, theirs))
            }
            // Unreachable: both subtrees have the same height.
            _ => false,
        }
}

/// Restricts a subtree whose first number is `from`.
fn restrict_subtree(part: &Subtree, height: u32, from: u64, range: &Range<u64>) -> Subtree {
    let node = part.as_ref()?;
    let subtree_end = from + subtree_capacity(height);
    // A subtree inside the range is shared, not copied.
    if range.start <= from && subtree_end <= range.end {
        return part.clone();
    }
    if range.end <= from || subtree_end <= range.start {
        return None;
    }
    match &**node {
        ClockNode::Leaf(times) => {
            let inside = |index: usize| range.contains(&(from + index as u64));
            let times: [u32; LEAF_SIZE] = std::array::from_fn(|at| if inside(at) { times[at] } else { 0 });
            times.iter().any(|time| *time > 0).then(|| Rc::new(ClockNode::Leaf(times)))
        }
        ClockNode::Inner(parts) => {
            let restricted_child = |index: usize| {
                restrict_subtree(
                    &parts[index],
                    height - 1,
                    from + index as u64 * subtree_capacity(height - 1),
                    range,
                )
            };
            let parts: [Subtree; FANOUT] = std::array::from_fn(restricted_child);
            parts.iter().any(Option::is_some).then(|| Rc::new(ClockNode::Inner(parts)))
        }
    }
}
