//! Counts buffer contents after dispatches, and reports them by their differences.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dispatch::Execution;

/// The maximum number of stored words of all contents.
const MAX_STORED_WORDS: usize = 1 << 24;
/// The maximum number of different contents that are counted separately.
const MAX_CONTENTS: usize = 1 << 17;
/// The maximum number of reported rows, the most frequent first.
pub const MAX_ROWS: usize = 2_048;
/// The maximum number of reported words of a row.
const MAX_CHANGES: usize = 64;

/// A word that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordChange {
    /// Index of the buffer among the writable ones.
    pub buffer: u32,
    /// Index of the word.
    pub word: u64,
    pub value: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The number of dispatches.
    pub count: u64,
    /// BLAKE3 hash of all words.
    pub hash: String,
    /// The values of the watched words, in their order.
    pub watched: Vec<u32>,
    /// The first differences. For the most frequent content, from the initial content; for the others, from
    /// the most frequent one.
    pub changes: Vec<WordChange>,
    /// The number of differing words, if known.
    pub changed: Option<u64>,
    /// True if a word that is not watched differs from its initial value.
    pub elsewhere: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaderObservations {
    pub dispatches: u64,
    /// The number of different contents.
    pub different: u64,
    /// Contents, the most frequent first.
    pub contents: Vec<Content>,
    /// Dispatches with contents that are not in this list.
    pub others: u64,
    /// Dispatches without returned contents; they count nowhere else.
    pub not_executed: u64,
    /// Submissions that finished, but with omitted or repeated parts. The device may have omitted other parts
    /// undetected, so that no content is certain to be that of a dispatch.
    pub left_out: u64,
    /// Invocations outside the dispatches of such submissions, as far as they were counted.
    #[serde(default)]
    pub outside_grid: u64,
    /// The number of these submissions with a checksum of the device that differs from the words that the
    /// host read.
    #[serde(default)]
    pub misread: u64,
    pub seconds: f64,
}

/// The words of all buffers of a dispatch, concatenated.
pub(super) struct DispatchContents {
    words: Vec<u32>,
}

impl DispatchContents {
    pub fn add(&mut self, words: &[u32]) {
        self.words.extend_from_slice(words);
    }
}

/// One of the observed contents.
struct ContentsRow {
    count: u64,
    watched: Vec<u32>,
    elsewhere: bool,
    /// The words, while there is room.
    words: Option<Vec<u32>>,
}

#[derive(Default)]
pub(super) struct ContentCounts {
    /// The position of each buffer's first word.
    starts: Vec<usize>,
    initial: Vec<u32>,
    /// Positions of the watched words.
    watched: Vec<usize>,
    is_watched: Vec<bool>,
    rows: HashMap<blake3::Hash, ContentsRow>,
    stored_words: usize,
    dispatches: u64,
    others: u64,
    not_executed: u64,
    left_out: u64,
    outside_grid: u64,
    misread: u64,
    seconds: f64,
}

impl ContentCounts {
    /// Creates empty counts for buffers with this initial content.
    pub fn new(initial: Vec<Vec<u32>>, watched: &[(u32, u64)]) -> ContentCounts {
        let mut starts = Vec::with_capacity(initial.len());
        let mut all = Vec::new();
        for words in initial {
            starts.push(all.len());
            // A buffer has at least one word.
            all.extend(if words.is_empty() { vec![0] } else { words });
        }
        let place = |(buffer, word): &(u32, u64)| {
            let number = *buffer as usize;
            let end = starts.get(number + 1).copied().unwrap_or(all.len());
            let at = starts.get(number)?.checked_add(usize::try_from(*word).ok()?)?;
            (at < end).then_some(at)
        };
        // A word that no buffer has reads as 0.
        let place = |watched| place(watched).unwrap_or(usize::MAX);
        let watched: Vec<usize> = watched.iter().map(place).collect();
        let mut is_watched = vec![false; all.len()];
        for place in &watched {
            if let Some(flag) = is_watched.get_mut(*place) {
                *flag = true;
            }
        }
        ContentCounts { starts, initial: all, watched, is_watched, ..ContentCounts::default() }
    }

    /// Returns the number of dispatches, including those without returned contents.
    pub fn dispatches(&self) -> u64 {
        self.dispatches + self.not_executed
    }

    pub fn add_time(&mut self, time: Duration) {
        self.seconds += time.as_secs_f64();
    }

    /// Records a submission that finished with omitted, repeated or surplus parts, or whose contents were misread.
    pub fn record_incomplete(&mut self, execution: Execution) {
        self.left_out += 1;
        match execution {
            Execution::AsRequested | Execution::Incomplete => {}
            Execution::Excessive { outside } => self.outside_grid += outside,
            Execution::Misread => self.misread += 1,
        }
    }

    /// Returns an empty list with room for the words of a dispatch.
    pub fn empty_contents(&self) -> DispatchContents {
        DispatchContents { words: Vec::with_capacity(self.initial.len()) }
    }

    /// Counts the contents after a dispatch. A poison word that was not in the initial content means that not
    /// all was executed.
    pub fn count_contents(&mut self, DispatchContents { words }: DispatchContents, poison: u32) {
        let poisoned = |(now, before): (&u32, &u32)| *now == poison && *before != poison;
        if words.len() != self.initial.len() || words.iter().zip(&self.initial).any(poisoned) {
            self.not_executed += 1;
            return;
        }
        self.dispatches += 1;
        let mut hasher = blake3::Hasher::new();
        for word in &words {
            hasher.update(&word.to_le_bytes());
        }
        let hash = hasher.finalize();
        if let Some(row) = self.rows.get_mut(&hash) {
            row.count += 1;
            return;
        }
        if self.rows.len() >= MAX_CONTENTS {
            self.others += 1;
            return;
        }
        let watched = self.watched.iter().map(|place| words.get(*place).copied().unwrap_or(0)).collect();
        let differs = words.iter().zip(&self.initial).zip(&self.is_watched);
        let elsewhere = differs.into_iter().any(|((now, before), watched)| !watched && now != before);
        // Beyond the limit, a content is only counted by its hash.
        let is_stored = self.stored_words + words.len() <= MAX_STORED_WORDS;
        self.stored_words += if is_stored { words.len() } else { 0 };
        self.rows
            .insert(hash, ContentsRow { count: 1, watched, elsewhere, words: is_stored.then_some(words) });
    }

    /// Returns the observations so far.
    pub fn observations(&self) -> ShaderObservations {
        let mut rows: Vec<(&blake3::Hash, &ContentsRow)> = self.rows.iter().collect();
        // The hash breaks ties, so that the order is reproducible.
        rows.sort_by_key(|(hash, row)| (std::cmp::Reverse(row.count), *hash.as_bytes()));
        let most_frequent = rows.first().and_then(|(_, row)| row.words.as_deref());
        let mut contents = Vec::with_capacity(rows.len().min(MAX_ROWS));
        let mut others = self.others;
        for (number, (hash, row)) in rows.iter().enumerate() {
            if number >= MAX_ROWS {
                others += row.count;
                continue;
            }
            let base = if number == 0 { Some(self.initial.as_slice()) } else { most_frequent };
            let (changes, changed) = match (base, &row.words) {
                (Some(base), Some(words)) => self.changes(base, words),
                _ => (Vec::new(), None),
            };
            contents.push(Content {
                count: row.count,
                hash: hash.to_hex().to_string(),
                watched: row.watched.clone(),
                changes,
                changed,
                elsewhere: row.elsewhere,
            });
        }
        ShaderObservations {
            dispatches: self.dispatches,
            different: self.rows.len() as u64,
            contents,
            others,
            not_executed: self.not_executed,
            left_out: self.left_out,
            outside_grid: self.outside_grid,
            misread: self.misread,
            seconds: self.seconds,
        }
    }

    fn changes(&self, base: &[u32], words: &[u32]) -> (Vec<WordChange>, Option<u64>) {
        let (mut changes, mut count) = (Vec::new(), 0);
        for (place, (before, now)) in base.iter().zip(words).enumerate() {
            if before == now {
                continue;
            }
            count += 1;
            if changes.len() < MAX_CHANGES {
                let buffer = self.starts.partition_point(|start| *start <= place).saturating_sub(1);
                let start = self.starts.get(buffer).copied().unwrap_or(0);
                changes.push(WordChange { buffer: buffer as u32, word: (place - start) as u64, value: *now });
            }
        }
        (changes, Some(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POISON: u32 = 77;

    fn count_rows(rows: &[(&[u32], u64)]) -> ContentCounts {
        let mut counted = ContentCounts::new(vec![vec![0, 0], vec![5]], &[(1, 0)]);
        for (words, count) in rows {
            for _ in 0..*count {
                let mut room = counted.empty_contents();
                room.add(words);
                counted.count_contents(room, POISON);
            }
        }
        counted
    }

    #[test]
    fn contents_are_shown_as_differences_from_the_most_common() {
        let seen = count_rows(&[(&[1, 2, 5], 3), (&[1, 3, 6], 1), (&[0, 0, 5], 2)]).observations();
        assert_eq!((seen.dispatches, seen.different, seen.others), (6, 3, 0));
        let counts: Vec<u64> = seen.contents.iter().map(|content| content.count).collect();
        assert_eq!(counts, [3, 2, 1]);
        let change = |buffer, word, value| WordChange { buffer, word, value };
        assert_eq!(seen.contents[0].changes, [change(0, 0, 1), change(0, 1, 2)]);
        assert_eq!(seen.contents[1].changes, [change(0, 0, 0), change(0, 1, 0)]);
        assert_eq!(seen.contents[2].changes, [change(0, 1, 3), change(1, 0, 6)]);
        assert_eq!(seen.contents[2].watched, [6]);
        let elsewhere: Vec<bool> = seen.contents.iter().map(|content| content.elsewhere).collect();
        assert_eq!(elsewhere, [true, false, true]);
    }

    #[test]
    fn a_watched_word_past_its_buffer_is_zero() {
        let mut counted = ContentCounts::new(vec![vec![0, 0], vec![5]], &[(0, 2), (1, 0), (2, 0)]);
        let mut room = counted.empty_contents();
        room.add(&[1, 2, 6]);
        counted.count_contents(room, POISON);
        assert_eq!(counted.observations().contents[0].watched, [0, 6, 0]);
    }

    #[test]
    fn dispatches_without_results_are_counted_separately() {
        let counted = count_rows(&[(&[POISON, POISON, POISON], 2), (&[0, 0, 5], 1)]);
        assert_eq!(counted.dispatches(), 3);
        let seen = counted.observations();
        assert_eq!((seen.dispatches, seen.not_executed), (1, 2));
    }

    #[test]
    fn rows_are_bounded() {
        let mut counted = ContentCounts::new(vec![vec![0]], &[]);
        for word in 0..3_000 {
            let mut room = counted.empty_contents();
            room.add(&[word]);
            counted.count_contents(room, POISON);
        }
        let seen = counted.observations();
        // One content is the poison itself, in the only word.
        assert_eq!((seen.dispatches, seen.not_executed), (2_999, 1));
        assert_eq!((seen.contents.len(), seen.others), (MAX_ROWS, 2_999 - MAX_ROWS as u64));
        assert_eq!(
            seen.contents.iter().map(|content| content.count).sum::<u64>() + seen.others,
            seen.dispatches
        );
    }
}
