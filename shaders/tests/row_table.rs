//! Tables of outcomes, and the kernels that count them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use shaders::classify::{
    BufferRole, CountedMemory, MAX_ROWS, RowColumn, RowTable, WordSource, counting_kernel, reset_kernel,
};

fn memory() -> CountedMemory {
    CountedMemory {
        lanes: 8,
        slots: 4,
        storage_words: 2,
        initial_values: vec![0, 7 << 32 | 5],
        done_slots: vec![3],
        by_round: false,
        workgroup_size: 64,
        workgroups: 3,
        first_receipt: 100,
        device_scope: true,
    }
}

fn table() -> RowTable {
    let column = |source, words: &[u32]| RowColumn { source, words: words.to_vec() };
    RowTable::new(vec![
        column(WordSource::Slot(0), &[0, 1, 2]),
        column(WordSource::Storage { number: 1, word: 1 }, &[7, u32::MAX]),
        column(WordSource::Texel { number: 0 }, &[0, 1]),
    ])
    .unwrap()
}

#[test]
fn every_row_has_unique_digits() {
    let table = table();
    let mut seen = Vec::new();
    for row in 0..table.row_count() {
        let mut digits = Vec::new();
        table.append_digits(row, &mut digits);
        assert_eq!(digits[0] + 3 * (digits[1] + 2 * digits[2]), row as usize);
        seen.push(digits);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 12);
}

#[test]
fn tables_are_bounded_and_no_column_is_empty() {
    let column = |count| RowColumn { source: WordSource::Slot(0), words: (0..count).collect() };
    assert_eq!(RowTable::new(vec![column(128), column(128)]).unwrap().row_count(), MAX_ROWS);
    assert_eq!(RowTable::new(vec![column(128), column(129)]), None);
    assert_eq!(RowTable::new(vec![column(0)]), None);
    assert_eq!(RowTable::new(Vec::new()).unwrap().counter_count(), 2);
}

#[test]
fn the_kernels_keep_the_rules_of_modules() {
    for by_round in [false, true] {
        for device_scope in [false, true] {
            let memory = CountedMemory { by_round, device_scope, ..memory() };
            for helper in [reset_kernel(&memory), counting_kernel(&memory, &table())] {
                crate::common::assert_valid_uses(&helper.words);
            }
        }
    }
    let bindings = counting_kernel(&memory(), &table()).bindings;
    assert_eq!(
        bindings,
        [BufferRole::Results, BufferRole::Counters, BufferRole::Locations, BufferRole::Texels]
    );
}

#[test]
fn the_kernels_only_have_listed_instructions() {
    for helper in [reset_kernel(&memory()), counting_kernel(&memory(), &table())] {
        for instruction in shaders::parse_module(&helper.words).unwrap().all_inst_iter() {
            let op = instruction.class.opcode;
            assert!(crate::common::is_of_compute_kernels(op), "{op:?}");
        }
    }
}
