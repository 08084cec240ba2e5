//! Rows counted by a device: the table for a test, and merging them with the host's counts.

use std::collections::BTreeMap;

use shaders::classify::{self, RowTable};

use super::{Batching, Counter, InstanceWord, KEY_BITS, MAX_ROWS, ValueColumn};

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

    fn add_row(&mut self, row: &[u32], count: u64, batches: u64) {
        match self.key_of(row) {
            Some(key) => {
                if let Some(cell) = self.key_counts.get_mut(key) {
                    *cell += count;
                }
                if let Some(cell) =
                    self.batching.as_mut().and_then(|batching| batching.key_batches.get_mut(key))
                {
                    // The last batch in `cell.0` does not change: these rounds are over, and later
                    // ones have larger numbers.
                    cell.1 += batches;
                }
            }
            None => self.add_rare(row, count, batches),
        }
    }

    fn add_rare(&mut self, row: &[u32], count: u64, batches: u64) {
        let has_room = |known: bool, rows: usize| known || rows < MAX_ROWS;
        if let Some(batching) = &mut self.batching
            && batches > 0
            && has_room(batching.rare_batches.contains_key(row), batching.rare_batches.len())
        {
            batching.rare_batches.entry(row.to_vec()).or_default().1 += batches;
        }
        if has_room(self.rare_rows.contains_key(row), self.rare_rows.len()) {
            *self.rare_rows.entry(row.to_vec()).or_default() += count;
        } else {
            self.unrecorded += count;
        }
    }

    /// Returns the key of a row, if it has one.
    fn key_of(&self, row: &[u32]) -> Option<usize> {
        let (mut key, mut odd) = (0, 0);
        for (column, word) in self.columns.iter().zip(row) {
            column.add_to_key(&mut key, &mut odd, *word);
        }
        (odd == 0).then_some(key as usize)
    }

    /// Returns the instances with a row, and the batches that contain it.
    fn counts_of_row(&self, row: &[u32]) -> (u64, u64) {
        let key = self.key_of(row);
        let count = match key {
            Some(key) => self.key_counts.get(key),
            None => self.rare_rows.get(row),
        };
        let batches = self.batching.as_ref().and_then(|batching| match key {
            Some(key) => batching.key_batches.get(key),
            None => batching.rare_batches.get(row),
        });
        (count.copied().unwrap_or(0), batches.map_or(0, |(_, batches)| *batches))
    }

    /// Returns a counter with the same columns and no counts.
    pub fn clone_empty(&self) -> Counter {
        Counter {
            columns: self.columns.clone(),
            done_slots: self.done_slots.clone(),
            key_counts: vec![0; 1 << KEY_BITS],
            rare_rows: std::collections::HashMap::new(),
            unexpected: BTreeMap::new(),
            row: Vec::new(),
            batching: self.batching.as_ref().map(|_| Batching::new()),
            unresolved: 0,
            unrecorded: 0,
            instances: 0,
            ..*self
        }
    }

    /// Adds the counts of a counter with the same columns.
    pub fn merge(&mut self, other: &Counter) {
        for (cell, more) in self.key_counts.iter_mut().zip(&other.key_counts) {
            *cell += more;
        }
        if let (Some(own), Some(more)) = (&mut self.batching, &other.batching) {
            own.rounds_before += more.rounds_before;
            for (cell, more) in own.key_batches.iter_mut().zip(&more.key_batches) {
                cell.1 += more.1;
            }
        }
        let mut rare: Vec<_> = other.rare_rows.iter().collect();
        // In a stable order, because the limit decides which rows are kept.
        rare.sort_unstable();
        for (row, count) in rare {
            let batches = other.batching.as_ref().and_then(|batching| batching.rare_batches.get(row));
            self.add_rare(row, *count, batches.map_or(0, |(_, batches)| *batches));
        }
        for (row, count) in &other.unexpected {
            let known = self.unexpected.contains_key(row) || self.unexpected.len() < MAX_ROWS;
            // The empty row represents all rows beyond the limit, as in `count_row`.
            let row = if known { row.clone() } else { Vec::new() };
            *self.unexpected.entry(row).or_default() += count;
        }
        self.unresolved += other.unresolved;
        self.unrecorded += other.unrecorded;
        self.instances += other.instances;
    }

    /// Describes how a device's counts of a dispatch differ from these counts of the same dispatch.
    pub fn difference_from(&self, counted: &RowCounts) -> Option<String> {
        for (row, count, batches) in &counted.rows {
            let (own, own_batches) = self.counts_of_row(row);
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
