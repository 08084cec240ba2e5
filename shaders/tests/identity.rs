//! Hashes of kernels. A refactoring must not change this table; for another change it shows the affected
//! kernels. Kernels of the corpus appear by configuration and by family.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::classify::{column, counted_memory};
use crate::common;

use std::collections::BTreeMap;
use std::fmt::Write;

use common::{LAVAPIPE, NARROW};
use litmus::Test;
use shaders::classify::{RowTable, WordSource, counting_kernel, reset_kernel};
use shaders::progress::ProgressConfig;
use shaders::stress::stress_kernel;
use shaders::variant::CarrierStage;
use shaders::{
    CompileError, FixedDispatch, KernelConfig, Pipelines, Program, Variant, compile_fixed_program,
    compile_program,
};

/// FNV-1a with 64 bits.
#[derive(Clone, Copy, Debug)]
struct Hash {
    state: u64,
    kernels: usize,
}

impl Hash {
    const EMPTY: Hash = Hash { state: 0xcbf2_9ce4_8422_2325, kernels: 0 };

    fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_kernel(&mut self, words: &[u32]) {
        self.kernels += 1;
        words.iter().for_each(|word| self.add_bytes(&word.to_le_bytes()));
    }

    fn add_result(&mut self, made: &Result<Program, CompileError>) {
        match made {
            Ok(program) => program.kernels().for_each(|kernel| self.add_kernel(&kernel.words)),
            Err(error) => self.add_bytes(error.to_string().as_bytes()),
        }
    }
}

/// A configuration that compiles a test.
struct CompileConfig {
    name: String,
    /// True for compute kernels; families are hashed over those.
    compute: bool,
    compile: Box<CompileFn>,
}

type CompileFn = dyn Fn(&Test) -> Result<Program, CompileError>;

/// Every variant merged with one loop per thread, and split under stress; then other configurations.
fn compile_configs() -> Vec<CompileConfig> {
    let mut configs = Vec::new();
    let mut add = |name: String, config: KernelConfig, pipelines| {
        let compute = config.variant.stage == CarrierStage::Compute;
        configs.push(CompileConfig {
            name,
            compute,
            compile: Box::new(move |test| compile_program(test, &config, pipelines)),
        });
    };
    let variants = std::iter::once(("plain", Variant::default())).chain(shaders::variant::words());
    for (word, variant) in variants {
        let loops = KernelConfig { thread_loops: true, variant, ..LAVAPIPE };
        add(format!("{word} merged"), loops, Pipelines::Merged);
        let stressed = KernelConfig { has_stress: true, variant, ..NARROW };
        add(format!("{word} split stressed"), stressed, Pipelines::Split);
    }
    add("one loop".to_owned(), LAVAPIPE, Pipelines::Merged);
    add("without device scope".to_owned(), NARROW, Pipelines::Merged);
    for (name, pipelines) in [("fixed merged", Pipelines::Merged), ("fixed split", Pipelines::Split)] {
        let config = KernelConfig { lanes: 1, loop_bound: 1, ..LAVAPIPE };
        let compile =
            move |test: &Test| compile_fixed_program(test, &config, pipelines, &FixedDispatch::SINGLE);
        configs.push(CompileConfig { name: name.to_owned(), compute: true, compile: Box::new(compile) });
    }
    configs
}

#[test]
fn kernels_have_these_bytes() {
    let configs = compile_configs();
    let mut by_way = vec![Hash::EMPTY; configs.len()];
    let mut by_family: BTreeMap<String, Hash> = BTreeMap::new();
    for (number, entry) in litmus::corpus::tests().into_iter().enumerate() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let Ok(test) = litmus::convert::to_device_program(&test) else { continue };
        let family = entry.id.split('/').next().unwrap_or_default().to_owned();
        let family = by_family.entry(family).or_insert(Hash::EMPTY);
        // Each test is compiled in one of three configurations, in turn.
        let chosen = |index: &usize| (number + index).is_multiple_of(3);
        for (_, (way, hash)) in configs.iter().zip(&mut by_way).enumerate().filter(|(index, _)| chosen(index))
        {
            let made = (way.compile)(&test);
            hash.add_result(&made);
            if way.compute {
                family.add_result(&made);
            }
        }
    }
    assert!(by_way.iter().all(|hash| hash.kernels > 100), "{by_way:?}");
    let ways = configs.into_iter().map(|way| way.name).zip(by_way);
    let helpers = [
        ("forward progress".to_owned(), progress()),
        ("memory stress".to_owned(), stress()),
        ("classification".to_owned(), classification()),
    ];
    let mut table = String::new();
    for (name, hash) in ways.chain(by_family).chain(helpers) {
        writeln!(table, "{:016x} {:>6} {name}", hash.state, hash.kernels).unwrap();
    }
    insta::assert_snapshot!(table);
}

fn progress() -> Hash {
    let mut hash = Hash::EMPTY;
    let roomy = crate::progress::CONFIGS[0];
    let bare = ProgressConfig {
        device_scope: false,
        copies: 1,
        max_iterations: None,
        stop_polls: 1,
        has_final_barrier: true,
        ..roomy
    };
    for entry in litmus::corpus::progress_tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        for config in [roomy, bare] {
            match shaders::progress::compile(&test, &config) {
                Ok(kernel) => hash.add_kernel(&kernel.words),
                Err(error) => hash.add_bytes(error.to_string().as_bytes()),
            }
        }
    }
    hash
}

fn stress() -> Hash {
    let mut hash = Hash::EMPTY;
    for config in [LAVAPIPE, NARROW] {
        hash.add_kernel(&stress_kernel(&config, 32).words);
    }
    hash
}

fn classification() -> Hash {
    let mut hash = Hash::EMPTY;
    let few = [0, 1, 2];
    let many: Vec<u32> = (0..100).collect();
    let tables = [
        vec![column(WordSource::Slot(0), &few), column(WordSource::Slot(1), &[7, u32::MAX])],
        vec![
            column(WordSource::Storage { number: 0, word: 1 }, &few),
            column(WordSource::Texel { number: 1 }, &few),
        ],
        vec![column(WordSource::Slot(0), &many), column(WordSource::Slot(1), &many)],
    ];
    for columns in tables {
        let table = RowTable::new(columns).unwrap();
        for (by_round, device_scope, storage_words) in [(false, true, 1), (true, false, 2)] {
            let memory = counted_memory(by_round, device_scope, storage_words);
            hash.add_kernel(&reset_kernel(&memory).words);
            hash.add_kernel(&counting_kernel(&memory, &table).words);
        }
    }
    hash
}
