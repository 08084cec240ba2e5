//! Sets of events as bit sets of one or several words.

use std::fmt::Debug;
use std::hash::Hash;

/// A set of events.
pub trait Bits: Copy + PartialEq + Eq + Hash + Debug + Send + Sync + 'static {
    /// The largest number of events that the type can hold.
    const CAPACITY: usize;

    /// The set without members.
    fn empty() -> Self;

    /// The events 0 … n−1.
    fn universe(n: usize) -> Self;

    /// The set of one event; without members past the capacity.
    fn single(event: usize) -> Self;

    /// Returns the set if the condition holds, else the set without members.
    fn only_if(self, condition: bool) -> Self;

    /// Returns true if the event is a member.
    fn contains(self, event: usize) -> bool;

    /// Adds an event.
    fn insert(&mut self, event: usize);

    /// Removes an event.
    fn remove(&mut self, event: usize);

    /// Events of either operand.
    fn union(self, other: Self) -> Self;

    /// Events of both.
    fn intersection(self, other: Self) -> Self;

    /// Events of `self` that are not in `other`.
    fn difference(self, other: Self) -> Self;

    /// Returns true if the set has no member.
    fn is_empty(self) -> bool;

    /// Number of members.
    fn len(self) -> usize;

    /// The smallest member.
    fn first(self) -> Option<usize>;

    /// The largest member.
    fn last(self) -> Option<usize>;

    /// The events 0 … n−1 that are not in `self`.
    #[inline]
    fn complement(self, n: usize) -> Self {
        Self::universe(n).difference(self)
    }

    /// Returns true if every member is in `other`.
    #[inline]
    fn is_subset(self, other: Self) -> bool {
        self.difference(other).is_empty()
    }

    /// The members in order.
    #[inline]
    fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let event = rest.first()?;
            rest.remove(event);
            Some(event)
        })
    }

    /// The set of the given events.
    fn from_events(events: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::empty();
        for event in events {
            set.insert(event);
        }
        set
    }
}

/// The word with bit `event` set; 0 past the width of the word.
macro_rules! bit {
    ($word:ty, $event:expr) => {
        (1 as $word).checked_shl($event as u32).unwrap_or(0)
    };
}

macro_rules! word_bits {
    ($word:ty) => {
        impl Bits for $word {
            const CAPACITY: usize = <$word>::BITS as usize;

            #[inline]
            fn empty() -> Self {
                0
            }

            #[inline]
            fn universe(n: usize) -> Self {
                if n >= Self::CAPACITY { <$word>::MAX } else { bit!($word, n) - 1 }
            }

            #[inline]
            fn single(event: usize) -> Self {
                bit!($word, event)
            }

            #[inline]
            fn only_if(self, condition: bool) -> Self {
                // Without a branch: zero minus the bit is a mask of all ones or none.
                self & (0 as $word).wrapping_sub(<$word>::from(condition))
            }

            #[inline]
            fn contains(self, event: usize) -> bool {
                self & bit!($word, event) != 0
            }

            #[inline]
            fn insert(&mut self, event: usize) {
                *self |= bit!($word, event);
            }

            #[inline]
            fn remove(&mut self, event: usize) {
                *self &= !bit!($word, event);
            }

            #[inline]
            fn union(self, other: Self) -> Self {
                self | other
            }

            #[inline]
            fn intersection(self, other: Self) -> Self {
                self & other
            }

            #[inline]
            fn difference(self, other: Self) -> Self {
                self & !other
            }

            #[inline]
            fn is_empty(self) -> bool {
                self == 0
            }

            #[inline]
            fn len(self) -> usize {
                self.count_ones() as usize
            }

            #[inline]
            fn first(self) -> Option<usize> {
                (self != 0).then(|| self.trailing_zeros() as usize)
            }

            #[inline]
            fn last(self) -> Option<usize> {
                self.checked_ilog2().map(|bit| bit as usize)
            }
        }
    };
}

word_bits!(u16);
word_bits!(u32);
word_bits!(u64);

/// The number of words of [`Bits256`].
const WORDS: usize = 4;

/// A set of up to 256 events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits256(pub [u64; WORDS]);

impl Bits256 {
    #[inline]
    fn zip(self, other: Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        Bits256(std::array::from_fn(|word| operation(self.0[word], other.0[word])))
    }
}

impl Bits for Bits256 {
    const CAPACITY: usize = 64 * WORDS;

    #[inline]
    fn empty() -> Self {
        Bits256([0; WORDS])
    }

    #[inline]
    fn universe(n: usize) -> Self {
        Bits256(std::array::from_fn(|word| u64::universe(n.saturating_sub(64 * word))))
    }

    #[inline]
    fn single(event: usize) -> Self {
        Bits256(std::array::from_fn(|word| if event / 64 == word { 1 << (event % 64) } else { 0 }))
    }

    #[inline]
    fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::empty() }
    }

    #[inline]
    fn contains(self, event: usize) -> bool {
        self.0.get(event / 64).is_some_and(|word| word.contains(event % 64))
    }

    #[inline]
    fn insert(&mut self, event: usize) {
        if let Some(word) = self.0.get_mut(event / 64) {
            word.insert(event % 64);
        }
    }

    #[inline]
    fn remove(&mut self, event: usize) {
        if let Some(word) = self.0.get_mut(event / 64) {
            Bits::remove(word, event % 64);
        }
    }

    #[inline]
    fn union(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    #[inline]
    fn intersection(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline]
    fn difference(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    #[inline]
    fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[inline]
    fn first(self) -> Option<usize> {
        self.0.iter().enumerate().find_map(|(word, bits)| bits.first().map(|bit| 64 * word + bit))
    }

    #[inline]
    fn last(self) -> Option<usize> {
        self.0.iter().enumerate().rev().find_map(|(word, bits)| bits.last().map(|bit| 64 * word + bit))
    }
}
