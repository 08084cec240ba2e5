//! Relations over the events of a structure, as bit matrices. A set is its identity relation.

/// A relation over events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    n: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Relation {
    pub(crate) fn empty(n: usize) -> Relation {
        let words = n.div_ceil(64);
        Relation { n, words, bits: vec![0; n * words] }
    }

    pub(crate) fn identity(n: usize) -> Relation {
        let mut relation = Relation::empty(n);
        (0..n).for_each(|event| relation.insert(event, event));
        relation
    }

    pub(crate) fn full(n: usize) -> Relation {
        let mut relation = Relation::empty(n);
        (0..n).for_each(|from| (0..n).for_each(|to| relation.insert(from, to)));
        relation
    }

    /// The relation with bit sets as rows; `None` if a row is malformed or has events past the last.
    pub(crate) fn from_rows<'a>(n: usize, rows: impl Iterator<Item = &'a str>) -> Option<Relation> {
        let mut relation = Relation::empty(n);
        for (from, row) in rows.enumerate() {
            for (index, digit) in row.chars().rev().enumerate() {
                let digit = digit.to_digit(16)?;
                for bit in (0..4).filter(|bit| digit >> bit & 1 == 1) {
                    let to = 4 * index + bit;
                    if from >= n || to >= n {
                        return None;
                    }
                    relation.insert(from, to);
                }
            }
        }
        Some(relation)
    }

    fn row(&self, from: usize) -> &[u64] {
        &self.bits[from * self.words..(from + 1) * self.words]
    }

    /// The events with a pair from `from`.
    pub(crate) fn targets(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.n).filter(move |to| self.contains(from, *to))
    }

    pub(crate) fn contains(&self, from: usize, to: usize) -> bool {
        self.bits[from * self.words + to / 64] >> (to % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, from: usize, to: usize) {
        self.bits[from * self.words + to / 64] |= 1 << (to % 64);
    }

    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        self.bits[from * self.words + to / 64] &= !(1 << (to % 64));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    fn combine(&self, other: &Relation, operation: impl Fn(u64, u64) -> u64) -> Relation {
        let bits = self.bits.iter().zip(&other.bits).map(|(one, other)| operation(*one, *other)).collect();
        Relation { bits, ..*self }
    }

    pub(crate) fn union(&self, other: &Relation) -> Relation {
        self.combine(other, |one, other| one | other)
    }

    pub(crate) fn intersection(&self, other: &Relation) -> Relation {
        self.combine(other, |one, other| one & other)
    }

    pub(crate) fn difference(&self, other: &Relation) -> Relation {
        self.combine(other, |one, other| one & !other)
    }

    pub(crate) fn compose(&self, other: &Relation) -> Relation {
        let mut result = Relation::empty(self.n);
        for from in 0..self.n {
            for index in 0..self.words {
                let mut word = self.bits[from * self.words + index];
                while word != 0 {
                    let between = 64 * index + word.trailing_zeros() as usize;
                    word &= word - 1;
                    let target = &mut result.bits[from * self.words..(from + 1) * self.words];
                    target.iter_mut().zip(other.row(between)).for_each(|(to, more)| *to |= more);
                }
            }
        }
        result
    }

    pub(crate) fn inverse(&self) -> Relation {
        let mut result = Relation::empty(self.n);
        for from in 0..self.n {
            self.targets(from).for_each(|to| result.insert(to, from));
        }
        result
    }

    /// The transitive closure, by Warshall's algorithm.
    pub(crate) fn plus(&self) -> Relation {
        let mut result = self.clone();
        for between in 0..self.n {
            let row = result.row(between).to_vec();
            for from in 0..self.n {
                if result.contains(from, between) {
                    let target = &mut result.bits[from * self.words..(from + 1) * self.words];
                    target.iter_mut().zip(&row).for_each(|(to, more)| *to |= more);
                }
            }
        }
        result
    }

    pub(crate) fn has_loop(&self) -> bool {
        (0..self.n).any(|event| self.contains(event, event))
    }

    /// The identity on the events with a target.
    pub(crate) fn domain(&self) -> Relation {
        let mut result = Relation::empty(self.n);
        let sources = (0..self.n).filter(|from| self.row(*from).iter().any(|word| *word != 0));
        sources.for_each(|event| result.insert(event, event));
        result
    }
}
