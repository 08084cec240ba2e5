//! Kernels that reset memory and count outcomes are valid for every program. spirv-val and the check of
//! modules accept them.

use crate::common;

use common::Validator;
use shaders::classify::{CountedMemory, RowColumn, RowTable, WordSource, counting_kernel, reset_kernel};
use shaders::variant::SpirvVersion;

pub fn column(source: WordSource, words: &[u32]) -> RowColumn {
    RowColumn { source, words: words.to_vec() }
}

pub fn counted_memory(by_round: bool, device_scope: bool, storage_words: u32) -> CountedMemory {
    CountedMemory {
        lanes: 8,
        slots: 3,
        storage_words,
        initial_values: vec![0, 5, 3 << 32],
        done_slots: vec![2],
        by_round,
        workgroup_size: 64,
        workgroups: 5,
        first_receipt: 300,
        device_scope,
    }
}

#[test]
fn every_kernel_is_valid() {
    let few = [0, 1, 2];
    let many: Vec<u32> = (0..100).collect();
    let tables = [
        vec![],
        vec![column(WordSource::Slot(0), &few), column(WordSource::Slot(1), &few)],
        vec![
            column(WordSource::Slot(0), &[7, u32::MAX]),
            column(WordSource::Storage { number: 1, word: 0 }, &few),
        ],
        vec![
            column(WordSource::Storage { number: 0, word: 1 }, &few),
            column(WordSource::Texel { number: 1 }, &few),
        ],
        // Too many rows for counters in workgroup memory.
        vec![column(WordSource::Slot(0), &many), column(WordSource::Slot(1), &many)],
    ];
    let mut validator = Validator::new();
    for columns in tables {
        let table = RowTable::new(columns).unwrap();
        for (by_round, device_scope, storage_words) in
            [(false, true, 1), (true, true, 2), (false, false, 2), (true, false, 1)]
        {
            let memory = counted_memory(by_round, device_scope, storage_words);
            for (name, helper) in
                [("reset", reset_kernel(&memory)), ("count", counting_kernel(&memory, &table))]
            {
                let verdict = validator.run_spirv_val(&helper.words, SpirvVersion::Vulkan12);
                assert_eq!(verdict, Ok(()), "{name} of {memory:?}, {table:?}");
                crate::common::assert_valid_uses(&helper.words);
                validator.validated += 1;
            }
        }
    }
    assert_eq!(validator.validated, 40);
}
