//! Tests constructed in code, and a runner of spirv-val.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use vocabulary::Feature;

use litmus::*;
use rspirv::dr::Operand as SpirvOperand;
use rspirv::spirv::{Capability, Op, StorageClass as SpirvClass};
use shaders::variant::{self, CarrierStage};
use shaders::{CompileError, CompiledKernel, KernelConfig, Variant};

/// The configurations of the kernels in these tests.
pub const LAVAPIPE: KernelConfig = KernelConfig {
    subgroup_size: 8,
    lanes: 8,
    max_workgroup_invocations: 1024,
    loop_bound: 3,
    ..KernelConfig::MINIMAL
};

/// A device without Device scope and with small subgroups.
pub const NARROW: KernelConfig = KernelConfig {
    subgroup_size: 4,
    lanes: 64,
    max_workgroup_invocations: 128,
    device_scope: false,
    ..LAVAPIPE
};

/// Returns the opcode and the operands of each instruction of a module.
pub fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut rest = &words[5..];
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let (own, after) = rest.split_at((first >> 16) as usize);
        rest = after;
        Some((first & 0xffff, &own[1..]))
    })
}

/// Returns all tests in a folder in order, with their paths.
pub fn tests_in(folder: &Path) -> Vec<(String, Test)> {
    let mut tests = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            tests.extend(tests_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "litmus") {
            let name = path.display().to_string();
            let test = litmus::parse(&std::fs::read_to_string(path).unwrap(), &name).unwrap();
            tests.push((name, test));
        }
    }
    tests
}

/// Returns the tests of `litmus/corpus`.
pub fn own_corpus() -> Vec<(String, Test)> {
    tests_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../litmus/corpus")))
}

/// Selects the fragment stage for tests with interlocked sections; other stages do not support them.
pub fn in_its_stage(test: &Test, config: KernelConfig) -> KernelConfig {
    let stage = if test.interlock_order().is_some() { CarrierStage::Fragment } else { CarrierStage::Compute };
    KernelConfig { variant: Variant { stage, ..config.variant }, ..config }
}

/// Compiles each test in every variant, and checks that each kernel corresponds to its test. Those selected by the
/// sum of the positions of test and variant, or by the position of the variant, go through spirv-val. Returns the
/// number of kernels, and the rules that refused the others.
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn check_every_variant(
    tests: Vec<(String, Test)>,
    is_validated: impl Fn(usize, usize) -> bool,
) -> (usize, BTreeSet<String>) {
    let mut validator = Validator::new();
    let (mut kernels, mut refused) = (0, BTreeSet::new());
    let variants = || std::iter::once(Variant::default()).chain(variant::words().map(|(_, variant)| variant));
    for (number, (name, test)) in tests.into_iter().enumerate() {
        for (turn, variant) in variants().enumerate() {
            let config = if number % 2 == 0 { LAVAPIPE } else { NARROW };
            let context = format!("{name} @{variant}");
            match shaders::compile(&test, &KernelConfig { variant, ..config }) {
                Ok(kernel) => {
                    kernels += 1;
                    kernel_oracle::lift::verify(&test, &kernel)
                        .unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_clean(&kernel);
                    if is_validated(number + turn, turn) {
                        validator.validate(&context, &kernel);
                    }
                }
                Err(CompileError::NotPlaceable { rule }) => drop(refused.insert(rule)),
                Err(error) => panic!("{context}: {error}"),
            }
        }
    }
    eprintln!("{kernels} kernels, {} through spirv-val; refused: {refused:?}", validator.validated);
    (kernels, refused)
}

/// Returns the workgroup size declared in the module.
pub fn local_size(kernel: &CompiledKernel) -> [u32; 3] {
    use rspirv::dr::Operand::LiteralBit32 as Word;
    let module = shaders::parse_module(&kernel.words).unwrap();
    let sizes = module.execution_modes.iter().find_map(|mode| match mode.operands[..] {
        [_, _, Word(x), Word(y), Word(z)] => Some([x, y, z]),
        _ => None,
    });
    sizes.unwrap()
}

pub fn buffer_class() -> StorageClassSet {
    StorageClassSet::EMPTY.with(StorageClass::Buffer)
}

pub fn semantics(order: Order) -> Semantics {
    let classes = if order == Order::Relaxed { StorageClassSet::EMPTY } else { buffer_class() };
    Semantics { order, classes, ..Semantics::RELAXED }
}

pub fn thread_place(workgroup: u32, subgroup: u32) -> ThreadPlace {
    ThreadPlace::Device(Placement { queue_family: 0, queue: 0, workgroup, subgroup })
}

#[derive(Clone)]
pub struct Builder {
    pub test: Test,
}

impl Builder {
    pub fn new(name: &str, locations: &[&str]) -> Builder {
        let locations = locations.iter().map(|name| Location::new(*name)).collect();
        Builder { test: Test { locations, ..Test::new(name, Dialect::Vulkan) } }
    }

    /// Adds a thread with registers r0 … r3 and labels LC00 … LC11.
    pub fn thread(mut self, place: ThreadPlace, instructions: Vec<InstructionKind>) -> Builder {
        let number = self.test.threads.len() as u32;
        self.test.threads.push(Thread {
            number,
            place,
            registers: (0..4)
                .map(|index| Register {
                    name: format!("r{index}"),
                    init: RegisterInit::Constant(0),
                    declared: false,
                })
                .collect(),
            labels: (0..12).map(|index| Label { name: format!("LC{index:02}") }).collect(),
            instructions: instructions
                .into_iter()
                .map(|kind| Instruction { kind, span: Span::default() })
                .collect(),
            span: Span::default(),
        });
        self
    }
}

pub fn load(register: u16, location: u16, access: Access) -> InstructionKind {
    InstructionKind::load(RegisterId(register), place(location), access)
}

pub fn store(location: u16, value: Operand, access: Access) -> InstructionKind {
    InstructionKind::store(place(location), value, access)
}

fn place(location: u16) -> MemoryPlace {
    MemoryPlace::whole_location(LocationId(location), StorageClass::Buffer)
}

pub fn rmw(
    register: u16,
    location: u16,
    operation: RmwOperation,
    scope: Scope,
    semantics: Semantics,
) -> InstructionKind {
    InstructionKind::rmw(RegisterId(register), place(location), operation, scope, semantics)
}

pub fn atomic(scope: Scope, order: Order) -> Access {
    Access::Atomic { scope, semantics: semantics(order) }
}

pub fn constant(value: i64) -> Operand {
    Operand::Constant(value)
}

pub fn register(index: u16) -> Operand {
    Operand::Register(RegisterId(index))
}

pub fn barrier(execution: Scope, memory: Scope, semantics: BarrierSemantics, id: &str) -> InstructionKind {
    InstructionKind::ControlBarrier(ControlBarrier {
        execution_scope: execution,
        memory_scope: memory,
        semantics,
        id: id.to_owned(),
        resource: None,
        quorum: None,
    })
}

/// Runs spirv-val on modules; counts them, and reports skipped ones.
pub struct Validator {
    available: bool,
    /// The year of the release.
    year: u32,
    folder: tempfile::TempDir,
    pub validated: usize,
}

impl Validator {
    pub fn new() -> Validator {
        let output = Command::new("spirv-val").arg("--version").output();
        let output = output.ok().filter(|output| output.status.success());
        let available = output.is_some();
        if !available {
            eprintln!("skipped: spirv-val is not on PATH, modules are not validated from outside");
        }
        let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let year =
            version.as_deref().and_then(|text| text.split_once(" v")).and_then(|(_, rest)| rest.get(..4));
        let year = year.and_then(|year| year.parse().ok()).unwrap_or(0);
        Validator { available, year, folder: tempfile::tempdir().unwrap(), validated: 0 }
    }

    /// Panics if the module is not valid for its version of Vulkan.
    #[expect(clippy::panic, reason = "a test fails by panicking")]
    pub fn validate(&mut self, name: &str, kernel: &CompiledKernel) {
        if !self.available {
            return;
        }
        // The first release with support for a feature and its rules.
        for (feature, since) in
            [(Feature::ShaderSplitBarrier, 2026), (Feature::ShaderMaximalReconvergence, 2024)]
        {
            if self.year < since && kernel.requirements.features.contains(&feature) {
                eprintln!("skipped: spirv-val is older than {feature}, {name} is not validated from outside");
                return;
            }
        }
        if let Err(message) = self.run_spirv_val(&kernel.words, kernel.variant.target) {
            panic!("{name}: {message}\n{}", shaders::disassemble(&kernel.words).unwrap());
        }
        self.validated += 1;
    }

    /// Returns the verdict of spirv-val; `Ok` if it is not installed.
    pub fn run_spirv_val(&self, words: &[u32], target: variant::SpirvVersion) -> Result<(), String> {
        if !self.available {
            return Ok(());
        }
        let path = self.folder.path().join("module.spv");
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
        let environment = match target {
            variant::SpirvVersion::Vulkan11 => "vulkan1.1",
            variant::SpirvVersion::Vulkan12 => "vulkan1.2",
        };
        let mut command = Command::new("spirv-val");
        let output = command.args(["--target-env", environment]).arg(&path).output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    }
}

/// Panics if a module breaks a rule of the memory model, or lacks a capability that spirv-val does not require.
pub fn assert_valid_uses(words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(lint::invalid_uses(&entry_point::read_module(&bytes).unwrap()), []);
    let module = shaders::parse_module(words).unwrap();
    let has = |capability| {
        module.capabilities.iter().any(|one| one.operands == [SpirvOperand::Capability(capability)])
    };
    let ty = |id: u32| module.types_global_values.iter().find(|one| one.result_id == Some(id)).unwrap();
    for one in module.all_inst_iter() {
        let needed = match (one.class.opcode, &one.operands[..]) {
            (Op::TypePointer, [SpirvOperand::StorageClass(class), SpirvOperand::IdRef(to)])
                if matches!(class, SpirvClass::StorageBuffer | SpirvClass::PhysicalStorageBuffer)
                    && ty(*to).class.opcode == Op::TypeInt =>
            {
                match ty(*to).operands[0] {
                    SpirvOperand::LiteralBit32(8) => Capability::StorageBuffer8BitAccess,
                    SpirvOperand::LiteralBit32(16) => Capability::StorageBuffer16BitAccess,
                    _ => Capability::Shader,
                }
            }
            (Op::Select | Op::Phi, _) => match ty(one.result_type.unwrap()).operands.first() {
                Some(SpirvOperand::StorageClass(SpirvClass::StorageBuffer)) => {
                    Capability::VariablePointersStorageBuffer
                }
                Some(SpirvOperand::StorageClass(SpirvClass::Workgroup)) => Capability::VariablePointers,
                _ => Capability::Shader,
            },
            _ => Capability::Shader,
        };
        assert!(has(needed), "{one:?} without {needed:?}");
    }
}

/// The instructions of compute kernels without a form. Programs that execute or read kernels must support these.
const COMPUTE_INSTRUCTIONS: &str = include_str!("compute-instructions.txt");
/// The additional instructions of kernels in graphics stages: floating-point coordinates, and the outputs of mesh and task
/// shaders.
const STAGE_INSTRUCTIONS: &str = include_str!("stage-instructions.txt");

/// Returns true if a compute kernel without a form may have the instruction.
pub fn is_of_compute_kernels(op: Op) -> bool {
    let name = format!("{op:?}");
    COMPUTE_INSTRUCTIONS.lines().any(|known| known == name)
}

/// Panics if the kernel breaks a rule that spirv-val may miss, or has an instruction that is not listed.
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn assert_clean(kernel: &CompiledKernel) {
    assert_valid_uses(&kernel.words);
    let opcodes: BTreeSet<u32> = instructions(&kernel.words).map(|(opcode, _)| opcode).collect();
    for op in opcodes.into_iter().filter_map(Op::from_u32) {
        let name = format!("{op:?}");
        let is_of_stages = STAGE_INSTRUCTIONS.lines().any(|known| known == name);
        if !is_of_compute_kernels(op) && !is_of_stages {
            panic!("{op:?} is not listed");
        }
    }
}
