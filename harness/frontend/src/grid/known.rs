//! Up to which time each of many invocations is known.

use std::rc::Rc;

/// Numbers whose times lie together, and parts of a node: each takes as much memory.
const TIMES: usize = 32;
const PARTS: usize = 16;

/// Times by number; 0 where nothing is known. Two that came from one have in common what was not changed since: who takes a lock knows of
/// all who had it before, and learns of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    root: Part,
    /// Nodes above the times.
    height: u32,
}

/// What is known of some numbers, if anything is.
type Part = Option<Rc<Node>>;

#[derive(Clone, Debug)]
enum Node {
    Times([u32; TIMES]),
    Parts([Part; PARTS]),
}

/// How many numbers a part has room for with so many nodes above its times.
fn room(height: u32) -> u64 {
    (TIMES as u64).saturating_mul((PARTS as u64).saturating_pow(height))
}

/// Which part of a node of that height a number is in, and where in it.
fn within(number: u32, height: u32) -> (usize, u32) {
    // Below a node there is less room than there are numbers.
    let room = room(height - 1) as u32;
    ((number / room) as usize % PARTS, number % room)
}

impl Known {
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether both are told to be the same.
    pub fn is(&self, other: &Known) -> bool {
        self.height == other.height && is(&self.root, &other.root)
    }

    pub fn time(&self, number: u32) -> u32 {
        let (mut part, mut height, mut at) = (&self.root, self.height, number);
        if u64::from(number) >= room(height) {
            return 0;
        }
        loop {
            match part.as_deref() {
                None => return 0,
                Some(Node::Times(times)) => return times.get(at as usize).copied().unwrap_or(0),
                Some(Node::Parts(parts)) => {
                    let (which, rest) = within(at, height);
                    (part, height, at) = (&parts[which], height - 1, rest);
                }
            }
        }
    }

    pub fn learn(&mut self, number: u32, time: u32) {
        if self.time(number) >= time {
            return;
        }
        while u64::from(number) >= room(self.height) {
            self.rise();
        }
        learn(&mut self.root, self.height, number, time);
    }

    /// Makes room for more numbers.
    fn rise(&mut self) {
        self.height += 1;
        if self.root.is_some() {
            let mut parts = [const { None }; PARTS];
            parts[0] = self.root.take();
            self.root = Some(Rc::new(Node::Parts(parts)));
        }
    }

    /// As high as another one, if that is higher.
    fn raised(&self, height: u32) -> Known {
        let mut raised = self.clone();
        while raised.height < height {
            raised.rise();
        }
        raised
    }

    /// What either knows: the one or the other itself where that knows all.
    pub fn joined(&self, other: &Known) -> Known {
        if other.is_empty() || self.is(other) {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let height = self.height.max(other.height);
        Known { root: joined(&self.raised(height).root, &other.raised(height).root), height }
    }

    /// Whether it knows all that the other does.
    pub fn covers(&self, other: &Known) -> bool {
        let height = self.height.max(other.height);
        other.is_empty() || covers(&self.raised(height).root, &other.raised(height).root)
    }

    /// What it knows of a range of numbers.
    pub fn between(&self, first: u32, end: u32) -> Known {
        Known { root: between(&self.root, self.height, 0, (first.into(), end.into())), height: self.height }
    }
}

fn is(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn learn(part: &mut Part, height: u32, number: u32, time: u32) {
    let node = part.get_or_insert_with(|| {
        Rc::new(match height {
            0 => Node::Times([0; TIMES]),
            _ => Node::Parts([const { None }; PARTS]),
        })
    });
    match Rc::make_mut(node) {
        Node::Times(times) => times[number as usize % TIMES] = time,
        Node::Parts(parts) => {
            let (which, rest) = within(number, height);
            learn(&mut parts[which], height - 1, rest, time);
        }
    }
}

fn joined(one: &Part, other: &Part) -> Part {
    let (Some(mine), Some(theirs)) = (one, other) else { return one.clone().or_else(|| other.clone()) };
    if Rc::ptr_eq(mine, theirs) {
        return one.clone();
    }
    match (&**mine, &**theirs) {
        (Node::Times(mine), Node::Times(theirs)) => {
            let both = std::array::from_fn(|at| mine[at].max(theirs[at]));
            match () {
                () if both == *mine => one.clone(),
                () if both == *theirs => other.clone(),
                () => Some(Rc::new(Node::Times(both))),
            }
        }
        (Node::Parts(mine), Node::Parts(theirs)) => {
            let both: [Part; PARTS] = std::array::from_fn(|at| joined(&mine[at], &theirs[at]));
            let same = |parts: &[Part; PARTS]| both.iter().zip(parts).all(|(one, other)| is(one, other));
            match () {
                () if same(mine) => one.clone(),
                () if same(theirs) => other.clone(),
                () => Some(Rc::new(Node::Parts(both))),
            }
        }
        // Both are of one height.
        _ => one.clone(),
    }
}

fn covers(one: &Part, other: &Part) -> bool {
    let (mine, theirs) = match (one, other) {
        (_, None) => return true,
        (None, Some(_)) => return false,
        (Some(mine), Some(theirs)) => (mine, theirs),
    };
    Rc::ptr_eq(mine, theirs)
        || match (&**mine, &**theirs) {
            (Node::Times(mine), Node::Times(theirs)) => {
                mine.iter().zip(theirs).all(|(mine, theirs)| mine >= theirs)
            }
            (Node::Parts(mine), Node::Parts(theirs)) => {
                mine.iter().zip(theirs).all(|(mine, theirs)| covers(mine, theirs))
            }
            // Both are of one height.
            _ => false,
        }
}

/// What is known of a range; `from` is the first number of the part.
fn between(part: &Part, height: u32, from: u64, (first, end): (u64, u64)) -> Part {
    let node = part.as_ref()?;
    let behind = from + room(height);
    if first <= from && behind <= end {
        return part.clone();
    }
    if end <= from || behind <= first {
        return None;
    }
    match &**node {
        Node::Times(times) => {
            let inside = |at: usize| (first..end).contains(&(from + at as u64));
            let times: [u32; TIMES] = std::array::from_fn(|at| if inside(at) { times[at] } else { 0 });
            times.iter().any(|time| *time > 0).then(|| Rc::new(Node::Times(times)))
        }
        Node::Parts(parts) => {
            let of = |at: usize| {
                between(&parts[at], height - 1, from + at as u64 * room(height - 1), (first, end))
            };
            let parts: [Part; PARTS] = std::array::from_fn(of);
            parts.iter().any(Option::is_some).then(|| Rc::new(Node::Parts(parts)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Known;

    fn known(all: &BTreeMap<u32, u32>) -> Known {
        let mut known = Known::default();
        all.iter().for_each(|(number, time)| known.learn(*number, *time));
        known
    }

    /// Whatever is learned, joined and cut out, times are those of a map.
    #[test]
    fn times_are_those_of_a_map() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut all: Vec<(Known, BTreeMap<u32, u32>)> = vec![Default::default()];
        for _ in 0..20_000 {
            let one = random(all.len() as u64) as usize;
            let other = random(all.len() as u64) as usize;
            let (mut new, mut map) = all[one].clone();
            match random(4) {
                0 => {
                    let (theirs, more) = &all[other];
                    assert_eq!(
                        new.covers(theirs),
                        more.iter().all(|(number, time)| map.get(number).is_some_and(|known| known >= time))
                    );
                    new = new.joined(theirs);
                    for (number, time) in more {
                        let known = map.entry(*number).or_default();
                        *known = (*known).max(*time);
                    }
                }
                1 => {
                    let first = random(2_000) as u32;
                    let end = first + random(1_500) as u32;
                    new = new.between(first, end);
                    map.retain(|number, _| (first..end).contains(number));
                }
                _ => {
                    let spread = [40, 700, 20_000, 1 << 32][random(4) as usize];
                    let (number, time) = (random(spread) as u32, 1 + random(5) as u32);
                    new.learn(number, time);
                    let known = map.entry(number).or_default();
                    *known = (*known).max(time);
                }
            }
            assert!(map.iter().all(|(number, time)| new.time(*number) == *time));
            let number = random(3_000) as u32;
            assert_eq!(new.time(number), map.get(&number).copied().unwrap_or(0));
            assert_eq!(new.is_empty(), map.is_empty());
            let same = known(&map);
            assert!(new.covers(&same) && same.covers(&new));
            match all.len() < 40 {
                true => all.push((new, map)),
                false => all[other] = (new, map),
            }
        }
    }

    /// Who knows all that another one does is not made anew.
    #[test]
    fn what_covers_is_kept() {
        let one = known(&(0..3_000).map(|number| (number, 2)).collect());
        let other = known(&(0..3_000).step_by(7).map(|number| (number, 1)).collect());
        assert!(one.joined(&other).is(&one) && other.joined(&one).is(&one));
        let mut more = one.clone();
        more.learn(1, 3);
        assert!(!more.is(&one) && one.joined(&more).is(&more) && more.time(0) == 2);
    }
}
