//! The tables of order requirements, on machine code of drivers of every vendor for `mp/MP+rel-acq`.
//!
//! Each order is checked as it is, and with each ordering line removed.
//! `tests/texts/VENDOR-CHIP/FORM.THREAD.txt` has the last NIR and the machine code, as `codegen --emit ir`
//! prints them with Mesa 26.2.6.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use codegen::disassembly::{DisassemblerDialect, LineKind};
use codegen::order::{MemoryStep, StepKind, check_nir, check_order, find_required_orders, orders_of_steps};
use codegen::{
    Disassembly, ExpectedAccess, Form, FormKernel, KernelSizes, LineSource, align, align_module, form_kernels,
};
use litmus::{Access, Order, Scope, Semantics, StorageClass, StorageClassSet, Test, ThreadId};
use results::wire::{CodegenOrderVerdict, CodegenOrdered};
use vendor::{CodeOperation, CodePath};

/// Separates NIR and machine code.
const CODE_HEADING: &str = "=== machine code\n";

/// A text with its origin.
struct SampleText {
    name: String,
    dialect: &'static DisassemblerDialect,
    target: &'static str,
    form_kernel: FormKernel,
    nir: String,
    code: String,
}

fn parse_test() -> Test {
    let entry = litmus::corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap();
    litmus::parse(entry.text, &entry.id).unwrap()
}

fn find_kernel(test: &Test, form: Form, thread: &str) -> FormKernel {
    let sizes = KernelSizes {
        subgroup_size: 64,
        max_workgroup_invocations: 1024,
        device_scope: true,
        lanes: 64,
        intel_split_barriers: false,
    };
    let all = form_kernels(test, form, shaders::Variant::default(), &sizes).unwrap();
    all.into_iter().find(|unit| unit.name == thread).unwrap()
}

fn list_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn load_samples(test: &Test) -> Vec<SampleText> {
    let mut all = Vec::new();
    for folder in list_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts")) {
        let device = folder.file_name().unwrap().to_str().unwrap().replace('-', ":");
        let (vendor, chip) = vendor::parse_selector(&device).unwrap();
        for path in list_files(&folder) {
            let file = path.file_stem().unwrap().to_str().unwrap();
            let (form, thread) = file.rsplit_once('.').unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let (nir, code) = text.split_once(CODE_HEADING).unwrap();
            all.push(SampleText {
                name: format!("{device} {form} {thread}"),
                dialect: &vendor.dialect,
                target: &vendor.find_family(chip).unwrap().target,
                form_kernel: find_kernel(test, form.parse().unwrap(), thread),
                nir: nir.to_owned(),
                code: code.to_owned(),
            });
        }
    }
    all
}

/// Returns the check of the only order of a kernel of the test.
fn check_only_order(test: &Test, sample: &SampleText, machine: &Disassembly) -> CodegenOrdered {
    let [required] = find_required_orders(test, &sample.form_kernel).try_into().unwrap();
    check_order(&required, machine, &align(test, &sample.form_kernel, machine), sample.target)
}

#[test]
fn orders_of_every_vendor() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        let machine = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        let CodegenOrdered { verdict, why, .. } = check_only_order(&test, &sample, &machine);
        writeln!(text, "{}: {verdict:?}: {why}", sample.name).unwrap();
        let [required] = find_required_orders(&test, &sample.form_kernel).try_into().unwrap();
        if let Some(CodegenOrdered { verdict, why, .. }) = check_nir(&required, &sample.nir, 2) {
            writeln!(text, "    NIR: {verdict:?}: {why}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// Removing a required line loses the order; removing any other line except an access keeps it.
#[test]
fn removing_an_ordering_line_loses_the_order() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        let original = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        if check_only_order(&test, &sample, &original).verdict != CodegenOrderVerdict::Kept {
            continue;
        }
        for (at, line) in original.lines.iter().enumerate() {
            if line.kind != LineKind::Order {
                continue;
            }
            let mut reduced = original.clone();
            reduced.lines.remove(at);
            let CodegenOrdered { verdict, why, .. } = check_only_order(&test, &sample, &reduced);
            if verdict != CodegenOrderVerdict::Kept {
                writeln!(text, "{} without `{}`: {verdict:?}: {why}", sample.name, line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// The memory instructions of every vendor, with their source accesses and flags.
#[test]
fn memory_instructions_of_every_vendor() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        writeln!(text, "{}", sample.name).unwrap();
        let machine = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        for (line, source) in machine.lines.iter().zip(align(&test, &sample.form_kernel, &machine).sources) {
            if matches!(line.kind, LineKind::Access(_) | LineKind::Order) {
                let source = source.map_or_else(|| "-".to_owned(), |source| format!("{source:?}"));
                let words = sample.dialect.describe_line(&line.text, line.kind).join("; ");
                writeln!(text, "  {source}: {}\n      {words}", line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// A shader that stores to workgroup memory, waits at one or two control barriers, and loads it.
fn barrier_steps(barriers: usize) -> (Vec<MemoryStep>, Vec<ExpectedAccess>) {
    let source = |index| LineSource::Instruction(ThreadId(0), index);
    let access = |is_write: bool| StepKind::Access {
        class: StorageClass::Workgroup,
        strength: Access::Coherent { scope: Scope::Workgroup },
        is_read: !is_write,
        is_write,
    };
    let classes = StorageClassSet::EMPTY.with(StorageClass::Workgroup);
    let semantics = Semantics { order: Order::AcquireRelease, classes, ..Semantics::default() };
    let barrier = StepKind::Barrier { scope: Scope::Workgroup, semantics: Some(semantics) };
    let kinds = [vec![access(true)], vec![barrier; barriers], vec![access(false)]].concat();
    let steps = kinds.into_iter().enumerate();
    let steps = steps.map(|(index, kind)| MemoryStep { source: source(index), kind }).collect();
    let expected =
        |index, operation| ExpectedAccess::of_module(source(index), 0, operation, CodePath::Workgroup, 0);
    (steps, vec![expected(0, CodeOperation::Store), expected(barriers + 1, CodeOperation::Load)])
}

/// Control barriers of modules: the wait before them, and accesses that cross them.
#[test]
fn accesses_stay_on_their_side_of_a_control_barrier() {
    use CodegenOrderVerdict::{Kept, Lost, NotCovered, Unknown};
    const STORE: &str = "ds_write_b32 v0, v1\n";
    const LOAD: &str = "ds_read_b32 v2, v0\n";
    const WAIT: &str = "s_waitcnt lgkmcnt(0)\n";
    const BARRIER: &str = "s_barrier\n";
    let cases: [(&[&str], [CodegenOrderVerdict; 2]); 8] = [
        (&[STORE, WAIT, BARRIER, LOAD], [Kept, Kept]),
        (&[STORE, BARRIER, LOAD], [Unknown, Kept]),
        (&[STORE, "s_waitcnt lgkmcnt(1)\n", BARRIER, LOAD], [Unknown, Kept]),
        (&[WAIT, BARRIER, STORE, LOAD], [Lost, Kept]),
        (&[STORE, WAIT, LOAD, BARRIER], [Kept, Lost]),
        // Unrolled.
        (&[STORE, STORE, WAIT, BARRIER, LOAD, LOAD], [Kept, Kept]),
        (&[STORE, WAIT, LOAD], [NotCovered, NotCovered]),
        (&[STORE, WAIT, BARRIER, BARRIER, LOAD], [NotCovered, NotCovered]),
    ];
    let (steps, expected) = barrier_steps(1);
    let required = orders_of_steps(&steps);
    assert_eq!(required.len(), 2);
    let (steps, _) = barrier_steps(2);
    let two = orders_of_steps(&steps);
    let text = [STORE, WAIT, BARRIER, BARRIER, LOAD].concat();
    let machine = Disassembly::parse(&text, &vendor::radv().dialect).unwrap();
    let alignment = align_module(barrier_steps(2).1, &machine);
    assert_eq!(two.len(), 4);
    assert!(two.iter().all(|one| check_order(one, &machine, &alignment, "gfx900").verdict == Kept));
    for (lines, verdicts) in cases {
        let machine = Disassembly::parse(&lines.concat(), &vendor::radv().dialect).unwrap();
        let alignment = align_module(expected.clone(), &machine);
        let found = required.iter().map(|one| check_order(one, &machine, &alignment, "gfx900").verdict);
        assert_eq!(found.collect::<Vec<_>>(), verdicts, "{lines:?}");
    }
}

/// Two loads of one address become one line, across an acquire: the descriptors tell which buffer is read.
///
/// That is a loss if the value is needed, and if an invocation outside of the subgroup can observe it.
#[test]
fn a_merged_load_of_a_module_is_lost() {
    use CodegenOrderVerdict::{Kept, Lost, Unknown};
    let source = |index| LineSource::Instruction(ThreadId(0), index);
    let load = |scope, order| StepKind::Access {
        class: StorageClass::Buffer,
        strength: atomic_access(scope, order),
        is_read: true,
        is_write: false,
    };
    let verdict_of = |scope: Scope, invocations: u32, observer: Option<u32>, [before, after]: [&str; 2]| {
        let kinds = [load(scope, Order::Relaxed), load(scope, Order::Acquire), load(scope, Order::Relaxed)];
        let steps: Vec<MemoryStep> =
            (0..).zip(kinds).map(|(index, kind)| MemoryStep { source: source(index), kind }).collect();
        let expected = [0, 1, 0].into_iter().enumerate().map(|(index, storage)| {
            let (load, path) = (CodeOperation::Load, CodePath::Buffer);
            ExpectedAccess::of_module(source(index), storage, load, path, storage).in_block(1, observer)
        });
        let [required] = orders_of_steps(&steps).try_into().unwrap();
        let text = format!(
            "s_load_b256 s[4:11], s[2:3], null\n{before}buffer_load_b32 v1, off, s[8:11], 0 glc\n\
             s_waitcnt vmcnt(0)\n{after}"
        );
        let machine = Disassembly::parse(&text, &vendor::radv().dialect).unwrap();
        let alignment = align_module(expected.collect(), &machine);
        let found = check_order(&required.in_workgroup(invocations, 32), &machine, &alignment, "gfx1100");
        (found.verdict, found.is_merged)
    };
    const LINE: &str = "buffer_load_b32 v0, off, s[4:7], 0 glc\n";
    let merged = [LINE, ""];
    assert_eq!(verdict_of(Scope::Device, 1, Some(1), merged), (Lost, true));
    assert_eq!(verdict_of(Scope::Device, 1, Some(1), [LINE, LINE]), (Kept, false));
    // The value may be unneeded, as may be the whole block of the store, or the value of the first load.
    assert_eq!(verdict_of(Scope::Device, 1, None, merged), (Unknown, false));
    assert_eq!(verdict_of(Scope::Device, 1, Some(2), merged), (Unknown, false));
    assert_eq!(verdict_of(Scope::Device, 1, Some(1), ["", LINE]), (Unknown, false));
    assert_eq!(verdict_of(Scope::Workgroup, 1, Some(1), merged), (Kept, false));
    assert_eq!(verdict_of(Scope::Workgroup, 32, Some(1), merged), (Unknown, false));
    assert_eq!(verdict_of(Scope::Workgroup, 64, Some(1), merged), (Lost, true));
    assert_eq!(verdict_of(Scope::Subgroup, 64, Some(1), merged), (Unknown, false));
}

fn atomic_access(scope: Scope, order: Order) -> Access {
    let classes = [StorageClass::Buffer, StorageClass::Image].into_iter();
    let classes = classes.fold(StorageClassSet::EMPTY, StorageClassSet::with);
    Access::Atomic { scope, semantics: Semantics { order, classes, ..Semantics::default() } }
}

/// The code of a flag and an image, of which the image load does not bypass the caches although other loads do (F8).
#[test]
fn the_bits_of_other_loads_do_not_count() {
    use CodegenOrderVerdict::{Unknown, Weakened};
    let source = |index| LineSource::Instruction(ThreadId(0), index);
    let read = |class, order| StepKind::Access {
        class,
        strength: atomic_access(Scope::Device, order),
        is_read: true,
        is_write: false,
    };
    let kinds = [read(StorageClass::Buffer, Order::Acquire), read(StorageClass::Image, Order::Relaxed)];
    let steps: Vec<MemoryStep> =
        (0..).zip(kinds).map(|(index, kind)| MemoryStep { source: source(index), kind }).collect();
    let [required] = orders_of_steps(&steps).try_into().unwrap();
    let verdict_of = |tail: &str| {
        let text = format!(
            "BB19:\ns_load_b128 s[8:11], s[0:1], 0x20\nbuffer_load_b32 v0, off, s[8:11], s2 glc\n\
             s_waitcnt vmcnt(0)\ns_cbranch_scc0 BB21\nBB20:\ns_load_b256 s[12:19], s[0:1], null\n\
             image_load v2, v[2:3], s[12:19] dmask:0x1 dim:SQ_RSRC_IMG_2D unorm\nBB21:\n{tail}s_endpgm\n"
        );
        let machine = Disassembly::parse(&text, &vendor::radv().dialect).unwrap();
        let expected = [(0, CodePath::Image, 1), (1, CodePath::Buffer, 0)].map(|(storage, path, index)| {
            ExpectedAccess::of_module(source(index), storage, CodeOperation::Load, path, storage)
        });
        check_order(&required, &machine, &align_module(expected.to_vec(), &machine), "gfx1100").verdict
    };
    assert_eq!(verdict_of(""), Weakened);
    // The block may be entered without the flag.
    assert_eq!(verdict_of("s_branch BB20\n"), Unknown);
}

/// The lines of a kernel with workgroup memory, two buffers and an image belong to accesses of the same resource.
#[test]
fn lines_of_a_module_have_the_resource_of_their_access() {
    use CodeOperation::{Load, Store};
    use CodePath::{Buffer, Image, Workgroup};
    const ACCESSES: [(u32, CodeOperation, CodePath, &str); 9] = [
        (9, Store, Workgroup, "tile[i] ="),
        (9, Load, Workgroup, "tile[i + 1]"),
        (0, Store, Buffer, "data.v[i] ="),
        (2, Store, Image, "image ="),
        (1, Store, Buffer, "flag ="),
        (1, Load, Buffer, "flag"),
        (0, Load, Buffer, "data.v[i]"),
        (2, Load, Image, "image"),
        (0, Store, Buffer, "data.out[i] ="),
    ];
    let mut shown = String::new();
    for path in list_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (vendor, _) = vendor::parse_selector(&name.replace('-', ":")).unwrap();
        let machine = Disassembly::parse(&fs::read_to_string(&path).unwrap(), &vendor.dialect).unwrap();
        let expected = ACCESSES.iter().enumerate().map(|(index, (storage, operation, path, _))| {
            let source = LineSource::Instruction(ThreadId(0), index);
            ExpectedAccess::of_module(source, *storage, *operation, *path, index as u32)
        });
        let alignment = align_module(expected.collect(), &machine);
        writeln!(shown, "{name}").unwrap();
        for (line, source) in machine.lines.iter().zip(&alignment.sources) {
            if let LineKind::Access(_) = line.kind {
                let source = source.map_or("-", |source| match source {
                    LineSource::Instruction(_, index) => ACCESSES[index].3,
                    LineSource::Result(_) => "result",
                });
                writeln!(shown, "  {source}: {}", line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(shown);
}
