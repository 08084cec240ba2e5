//! What must stand between two accesses for one order of the memory model, as tables of vendors.
//!
//! A table says what its vendor's compiler puts there, or what the makers of the hardware or the compiler say is needed, with
//! the place where they do. What no row speaks of is unknown.

use crate::text::Operation;

/// An order that a test asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What comes after an acquire is not done before it.
    Acquire,
    /// What comes before a release is done before it.
    Release,
}

/// What one order needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The order.
    pub order: Order,
    /// What the first access does.
    pub first: &'static [Operation],
    /// What the targets of compilers begin with that it holds for; all where there is none.
    pub targets: &'static [&'static str],
    /// What must be found, each behind the one before.
    pub steps: &'static [NeedPart],
    /// Who says so.
    pub source: &'static str,
}

/// A part of what is needed.
#[derive(Clone, Copy, Debug)]
pub struct NeedPart {
    /// The source position.
    pub place: NeedPlace,
    /// One of these parts of lines.
    pub any: &'static [&'static str],
    /// Parts of lines that may be it, or do some of it: then nothing is known.
    pub perhaps: &'static [&'static str],
    /// What it is without.
    pub without: Without,
    /// In words.
    pub words: &'static str,
}

/// Where a part of what is needed stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedPlace {
    /// On a line between the two accesses, or before the second on its own line.
    Between,
    /// On the line of the second access, where that reads.
    SecondLoad,
    /// Nowhere on the lines of the two accesses: what is named makes the rest uncertain.
    NotOnEither,
}

/// What an order is where a part is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Lost: nothing orders the two.
    Lost,
    /// Weakened: part of what orders them is there.
    Weakened,
    /// Not known.
    Unknown,
}

/// A part between the two accesses without which nothing orders them.
pub(crate) const fn between(any: &'static [&'static str], words: &'static str) -> NeedPart {
    NeedPart { place: NeedPlace::Between, any, perhaps: &[], without: Without::Lost, words }
}

/// What a line's place in memory is, so that two accesses of a kind are told apart: a number, in the order of bindings.
pub type Places = fn(&[&str]) -> Vec<Option<u64>>;

/// Of whatever shows no places.
pub fn no_places(lines: &[&str]) -> Vec<Option<u64>> {
    vec![None; lines.len()]
}

/// The decimal number behind a word in a line.
pub(crate) fn number_behind(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}
