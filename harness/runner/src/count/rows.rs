//! Rows counted by a device: the table for a test, and merging them with the host's counts.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use shaders::classify::{self, RowTable};

use super::{Batching, Counter, InstanceWord, RowTally, ValueColumn};

/// The device's counts of each row of a table in one dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// The observed rows, as the test's numbers in column order: instances, and the rounds that contain them.
    pub rows: Vec<(Vec<u32>, u64, u64)>,
    /// Instances whose row is not in the table.
    pub outside_table: u64,
}

impl RowCounts {
    pub fn instances(&self) -> u64 {
        self.rows.iter().map(|(_, count, _)| count).sum::<u64>() + self.outside_table
    }
}

impl Counter {
    /// Returns the table of all rows of `numbers`; `None` if it is too large. The storages in `in_image`
    /// are read from texels.
    pub fn build_table(&self, numbers: &[u32], in_image: &[u32]) -> Option<RowTable> {
        let column = |column: &ValueColumn| {
            let source = match column.source {
                InstanceWord::Slot(slot) => classify::WordSource::Slot(slot as u32),
                InstanceWord::Storage(storage) if in_image.contains(&(storage as u32)) => {
                    classify::WordSource::Texel { number: storage as u32 }
                }
                InstanceWord::Storage(storage) => {
                    classify::WordSource::Storage { number: storage as u32, word: column.word as u32 }
                }
            };
            let words = numbers.iter().filter_map(|number| column.to_word(*number)).collect();
            classify::RowColumn { source, words }
        };
        RowTable::new(self.columns.iter().map(column).collect())
    }

    /// Returns the slots that contain whether a thread ended.
    pub fn done_slots(&self) -> Vec<u32> {
        self.done_slots.iter().map(|slot| *slot as u32).collect()
    }

    /// Returns the words of a unit of location memory.
    pub fn storage_words(&self) -> u32 {
        self.storage_words as u32
    }

    /// Returns true if instances are counted in batches, which are the rounds of a dispatch.
    pub fn is_batching(&self) -> bool {
        self.batching.is_some()
    }

    /// Converts the counters of `table` to counts. There is one group of counters for each part of the
    /// dispatch.
    pub fn decode_counters(&self, table: &RowTable, counters: &[u32]) -> RowCounts {
        let (rows, width) = (table.row_count() as usize, table.counter_count() as usize);
        let mut counts = RowCounts::default();
        let mut digits = Vec::new();
        // Each part has a full set of counters. A part with a nonzero counter is a round that
        // contains the row, if each round has its own part.
        let count_of = |row: usize| {
            let parts = counters.chunks_exact(width).filter_map(|part| part.get(row));
            parts
                .filter(|count| **count > 0)
                .fold((0, 0), |(sum, parts), count| (sum + u64::from(*count), parts + 1))
        };
        for row in 0..rows {
            let (count, parts) = count_of(row);
            if count > 0 {
                digits.clear();
                table.append_digits(row as u32, &mut digits);
                let words = table.columns().iter().zip(&digits);
                let words = words.map(|(column, digit)| column.words.get(*digit).copied().unwrap_or(0));
                let numbers = self.columns.iter().zip(words).map(|(column, word)| column.to_number(word));
                counts.rows.push((numbers.collect(), count, parts));
            }
        }
        // The counter after the last row is that of all other rows.
        counts.outside_table = count_of(rows).0;
        counts
    }

    /// Adds a dispatch with `rounds` rounds in which the table contains every instance's row.
    pub fn add_counted(&mut self, counted: &RowCounts, rounds: u64) {
        for (row, count, batches) in &counted.rows {
            self.add_row(row, *count, *batches);
        }
        self.instances += counted.instances();
        if let Some(batching) = &mut self.batching {
            batching.rounds_before += rounds;
        }
    }

    /// Adds counts of a row. Its rounds are over: later ones have larger numbers than its last batch.
    fn add_row(&mut self, row: &[u32], count: u64, batches: u64) {
        match self.tally_mut(row) {
            Some(tally) => {
                tally.instances += count;
                tally.batches += batches;
            }
            None => self.unrecorded += count,
        }
    }

    /// Returns a counter with the same columns and no counts.
    pub fn clone_empty(&self) -> Counter {
        Counter {
            columns: self.columns.clone(),
            done_slots: self.done_slots.clone(),
            rows: FxHashMap::default(),
            unexpected: BTreeMap::new(),
            batching: self.batching.map(|_| Batching::default()),
            unresolved: 0,
            unrecorded: 0,
            instances: 0,
            ..*self
        }
    }

    /// Adds the counts of a counter with the same columns.
    pub fn merge(&mut self, other: &Counter) {
        if let (Some(own), Some(more)) = (&mut self.batching, &other.batching) {
            own.rounds_before += more.rounds_before;
        }
        let mut rows: Vec<_> = other.rows.iter().collect();
        // In a stable order, because the limit decides which rows are kept.
        rows.sort_unstable_by_key(|(row, _)| *row);
        for (row, tally) in rows {
            self.add_row(row, tally.instances, tally.batches);
        }
        for (row, count) in &other.unexpected {
            self.add_unexpected(row, *count);
        }
        self.unresolved += other.unresolved;
        self.unrecorded += other.unrecorded;
        self.instances += other.instances;
    }

    /// Describes how a device's counts of a dispatch differ from these counts of the same dispatch.
    pub fn difference_from(&self, counted: &RowCounts) -> Option<String> {
        for (row, count, batches) in &counted.rows {
            let RowTally { instances: own, batches: own_batches, .. } =
                self.rows.get(row).copied().unwrap_or_default();
            if own != *count {
                return Some(format!("{count} instances with {row:?}, the host {own}"));
            }
            if self.is_batching() && own_batches != *batches {
                return Some(format!("{row:?} in {batches} rounds, the host in {own_batches}"));
            }
        }
        let (theirs, own) = (counted.instances(), self.instances);
        (theirs != own).then(|| format!("{theirs} instances, the host {own}"))
    }
}

impl ValueColumn {
    /// Returns the memory representation of a test's number; the inverse of [`ValueColumn::to_number`].
    fn to_word(self, number: u32) -> Option<u32> {
        if !self.is_float {
            return Some(number);
        }
        // A number that no `f32` represents exactly cannot be in such memory.
        let word = (number as i32 as f32).to_bits();
        (self.to_number(word) == number).then_some(word)
    }
}
