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

fn source(index: usize) -> LineSource {
    LineSource::Instruction(ThreadId(0), index)
}

fn semantics(order: Order) -> Semantics {
    let classes = [StorageClass::Buffer, StorageClass::Image, StorageClass::Workgroup].into_iter();
    Semantics {
        order,
        classes: classes.fold(StorageClassSet::EMPTY, StorageClassSet::with),
        ..Semantics::default()
    }
}

fn atomic_load(class: StorageClass, scope: Scope, order: Order) -> StepKind {
    let strength = Access::Atomic { scope, semantics: semantics(order) };
    StepKind::Access { class, strength, is_read: true, is_write: false }
}

/// Returns the checks of a module's orders on an AMD chip, in a workgroup of `invocations` in subgroups of 32.
fn check_module(
    kinds: &[StepKind],
    accesses: &[ExpectedAccess],
    invocations: u32,
    text: &str,
) -> Vec<CodegenOrdered> {
    let steps = kinds.iter().enumerate();
    let steps: Vec<_> =
        steps.map(|(index, kind)| MemoryStep { source: source(index), kind: *kind }).collect();
    let machine = Disassembly::parse(text, &vendor::radv().dialect).unwrap();
    let alignment = align_module(accesses.to_vec(), &machine);
    let orders = orders_of_steps(&steps).into_iter().map(|order| order.in_workgroup(invocations, 32));
    orders.map(|order| check_order(&order, &machine, &alignment, "gfx1100")).collect()
}

/// Control barriers of modules: the wait before them, and accesses that cross them.
#[test]
fn accesses_stay_on_their_side_of_a_control_barrier() {
    use CodegenOrderVerdict::{Kept, Lost, NotCovered, Unknown};
    const STORE: &str = "ds_write_b32 v0, v1\n";
    const LOAD: &str = "ds_read_b32 v2, v0\n";
    const WAIT: &str = "s_waitcnt lgkmcnt(0)\n";
    const BARRIER: &str = "s_barrier\n";
    let cases: [(usize, &[&str], &[CodegenOrderVerdict]); 9] = [
        (1, &[STORE, WAIT, BARRIER, LOAD], &[Kept, Kept]),
        (1, &[STORE, BARRIER, LOAD], &[Unknown, Kept]),
        (1, &[STORE, "s_waitcnt lgkmcnt(1)\n", BARRIER, LOAD], &[Unknown, Kept]),
        (1, &[WAIT, BARRIER, STORE, LOAD], &[Lost, Kept]),
        (1, &[STORE, WAIT, LOAD, BARRIER], &[Kept, Lost]),
        // Unrolled.
        (1, &[STORE, STORE, WAIT, BARRIER, LOAD, LOAD], &[Kept, Kept]),
        (1, &[STORE, WAIT, LOAD], &[NotCovered, NotCovered]),
        (1, &[STORE, WAIT, BARRIER, BARRIER, LOAD], &[NotCovered, NotCovered]),
        (2, &[STORE, WAIT, BARRIER, BARRIER, LOAD], &[Kept; 4]),
    ];
    let access = |is_write: bool| StepKind::Access {
        class: StorageClass::Workgroup,
        strength: Access::Coherent { scope: Scope::Workgroup },
        is_read: !is_write,
        is_write,
    };
    let semantics = Some(semantics(Order::AcquireRelease));
    let barrier = StepKind::Barrier { scope: Scope::Workgroup, semantics };
    for (barriers, lines, verdicts) in cases {
        let kinds = [vec![access(true)], vec![barrier; barriers], vec![access(false)]].concat();
        let accesses =
            [(0, CodeOperation::Store), (barriers + 1, CodeOperation::Load)].map(|(index, operation)| {
                ExpectedAccess::of_module(source(index), 0, operation, CodePath::Workgroup, 0)
            });
        let found = check_module(&kinds, &accesses, 64, &lines.concat());
        assert_eq!(found.iter().map(|one| one.verdict).collect::<Vec<_>>(), verdicts, "{lines:?}");
    }
}

/// Two loads of one address become one line, across an acquire: the descriptors tell which buffer is read.
///
/// That is a loss if the value is needed, and if an invocation outside of the subgroup can observe it.
#[test]
fn a_merged_load_of_a_module_is_lost() {
    use CodegenOrderVerdict::{Kept, Lost, Unknown};
    const LINE: &str = "buffer_load_b32 v0, off, s[4:7], 0 glc\n";
    let (device, workgroup) = (Scope::Device, Scope::Workgroup);
    let cases = [
        (device, 1, (1, true), [LINE, ""], Lost),
        (device, 1, (1, true), [LINE, LINE], Kept),
        // The value may be unneeded, as may be its whole block, or the value of the first load.
        (device, 1, (1, false), [LINE, ""], Unknown),
        (device, 1, (2, true), [LINE, ""], Unknown),
        (device, 1, (1, true), ["", LINE], Unknown),
        (workgroup, 1, (1, true), [LINE, ""], Kept),
        (workgroup, 32, (1, true), [LINE, ""], Unknown),
        (workgroup, 64, (1, true), [LINE, ""], Lost),
        (Scope::Subgroup, 64, (1, true), [LINE, ""], Unknown),
    ];
    for (scope, invocations, (block, is_observed), [before, after], verdict) in cases {
        let kinds = [Order::Relaxed, Order::Acquire, Order::Relaxed]
            .map(|order| atomic_load(StorageClass::Buffer, scope, order));
        let accesses = [(0, 0), (1, 1), (2, 0)].map(|(index, storage)| {
            let (load, path) = (CodeOperation::Load, CodePath::Buffer);
            ExpectedAccess::of_module(source(index), storage, load, path, storage)
                .in_block(if index == 2 { block } else { 1 }, is_observed)
        });
        let text = format!(
            "s_load_b256 s[4:11], s[2:3], null\n{before}buffer_load_b32 v1, off, s[8:11], 0 glc\n\
             s_waitcnt vmcnt(0)\n{after}"
        );
        let [found] = check_module(&kinds, &accesses, invocations, &text).try_into().unwrap();
        assert_eq!((found.verdict, found.is_merged), (verdict, verdict == Lost), "{scope:?} {text}");
    }
}

/// The code of a flag and an image, of which the image load does not bypass the caches although other loads do (F8).
#[test]
fn the_bits_of_other_loads_do_not_count() {
    use CodegenOrderVerdict::{Unknown, Weakened};
    let kinds = [(StorageClass::Buffer, Order::Acquire), (StorageClass::Image, Order::Relaxed)]
        .map(|(class, order)| atomic_load(class, Scope::Device, order));
    let accesses = [(0, CodePath::Image, 1), (1, CodePath::Buffer, 0)].map(|(storage, path, index)| {
        ExpectedAccess::of_module(source(index), storage, CodeOperation::Load, path, storage)
    });
    // In the second case, the block may be entered without the flag.
    for (tail, verdict) in [("", Weakened), ("s_branch BB20\n", Unknown)] {
        let text = format!(
            "BB19:\ns_load_b128 s[8:11], s[0:1], 0x20\nbuffer_load_b32 v0, off, s[8:11], s2 glc\n\
             s_waitcnt vmcnt(0)\ns_cbranch_scc0 BB21\nBB20:\ns_load_b256 s[12:19], s[0:1], null\n\
             image_load v2, v[2:3], s[12:19] dmask:0x1 dim:SQ_RSRC_IMG_2D unorm\nBB21:\n{tail}s_endpgm\n"
        );
        let [found] = check_module(&kinds, &accesses, 64, &text).try_into().unwrap();
        assert_eq!(found.verdict, verdict, "{tail}");
    }
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
            ExpectedAccess::of_module(source(index), *storage, *operation, *path, index as u32)
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
