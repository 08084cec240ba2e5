//! Intel: Mesa's ANV, and hasvk for chips before Skylake, on a shim that no distribution packages.
//!
//! Their assembly is read in the formats before and since Mesa 26.2.

use crate::driver::{CompileMethod, TextSource, Vendor, single_name_family};
use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::order::{
    MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition, number_after,
    required_between,
};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, note_rule, order_rule};

/// The compile method that both drivers share.
const SHIM: CompileMethod = CompileMethod::Shim {
    library: "libintel_noop_drm_shim.so",
    variable: Some("INTEL_STUB_GPU_PLATFORM"),
    has_chip_names: false,
};
const INSTALL: &str =
    "Debian: mesa-vulkan-drivers; the shim is in no package: ci/compilers builds it from Mesa's source";

/// Mesa's ANV, from Skylake on.
pub const ANV: Vendor = Vendor {
    selector_prefix: "anv",
    display_name: "ANV",
    driver_id: 6,
    driver_file_prefix: "intel_icd",
    library: "libvulkan_intel.so",
    compile_methods: &[SHIM],
    install: INSTALL,
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: None,
    text_source: TextSource::Properties,
    chip_prefix: None,
    families: &[
        single_name_family("skl", "gen9"),
        single_name_family("bxt", "gen9"),
        single_name_family("kbl", "gen9"),
        single_name_family("aml", "gen9"),
        single_name_family("glk", "gen9"),
        single_name_family("cfl", "gen9"),
        single_name_family("whl", "gen9"),
        single_name_family("cml", "gen9"),
        single_name_family("icl", "gen11"),
        single_name_family("ehl", "gen11"),
        single_name_family("jsl", "gen11"),
        single_name_family("tgl", "gen12"),
        single_name_family("rkl", "gen12"),
        single_name_family("dg1", "gen12"),
        single_name_family("adl", "gen12"),
        single_name_family("sg1", "gen12"),
        single_name_family("rpl", "gen12"),
        single_name_family("dg2", "xe-hpg"),
        single_name_family("mtl", "xe-lpg"),
        single_name_family("arl", "xe-lpg"),
        single_name_family("lnl", "xe2"),
        single_name_family("bmg", "xe2"),
        single_name_family("ptl", "xe3"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// Mesa's hasvk, before Skylake.
pub const HASVK: Vendor = Vendor {
    selector_prefix: "hasvk",
    display_name: "hasvk",
    driver_file_prefix: "intel_hasvk_icd",
    library: "libvulkan_intel_hasvk.so",
    families: &[
        single_name_family("ivb", "gen7"),
        single_name_family("byt", "gen7"),
        single_name_family("hsw", "gen7"),
        single_name_family("bdw", "gen8"),
        single_name_family("chv", "gen8"),
    ],
    ..ANV
};

/// The dialect of their disassemblers. In the older format, an instruction may have a second line with its
/// message descriptor.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "gen",
    preprocess: join_descriptors,
    rules: RULES,
    has_constant_addresses: false,
    resource_numbers,
    order_requirements: ORDER_REQUIREMENTS,
    fillers: &["nop"],
    register_prefixes: &['r', 'g'],
    named_registers: &["null", "nullUD"],
    block_prefix: "LABEL",
    ..DisassemblerDialect::new("gen", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("fence.", "fence"),
    order_rule("( fence,", "fence"),
    order_rule("memory_fence", "fence"),
    order_rule("memory fence", "fence"),
    order_rule("mfence", "fence"),
    order_rule("sync.allwr", "wait until all register writes are complete: every earlier load has returned"),
    order_rule("sync allwr", "wait until all register writes are complete: every earlier load has returned"),
    order_rule("sync.allrd", "wait until all sources of messages are read"),
    order_rule("sync allrd", "wait until all sources of messages are read"),
    order_rule("sync.bar", "control barrier"),
    order_rule("sync bar", "control barrier"),
    order_rule("sync.nop", "wait for the named tokens"),
    order_rule("sync nop", "wait for the named tokens"),
    order_rule("barrier", "control barrier"),
    access_rule("atomic_", CodeOperation::Atomic, CodePath::Address),
    access_rule("MsgDesc: ( atomic", CodeOperation::Atomic, CodePath::Address),
    access_rule("load.ugm", CodeOperation::Load, CodePath::Address),
    access_rule("store.ugm", CodeOperation::Store, CodePath::Address),
    access_rule("load.slm", CodeOperation::Load, CodePath::Workgroup),
    access_rule("store.slm", CodeOperation::Store, CodePath::Workgroup),
    access_rule("ugm MsgDesc: ( load", CodeOperation::Load, CodePath::Address),
    access_rule("ugm MsgDesc: ( store", CodeOperation::Store, CodePath::Address),
    access_rule("slm MsgDesc: ( load", CodeOperation::Load, CodePath::Workgroup),
    access_rule("slm MsgDesc: ( store", CodeOperation::Store, CodePath::Workgroup),
    access_rule("untyped_read", CodeOperation::Load, CodePath::Address),
    access_rule("untyped_write", CodeOperation::Store, CodePath::Address),
    access_rule("untyped_atomic", CodeOperation::Atomic, CodePath::Address),
    access_rule("untyped surface read", CodeOperation::Load, CodePath::Address),
    access_rule("untyped surface write", CodeOperation::Store, CodePath::Address),
    access_rule("untyped atomic", CodeOperation::Atomic, CodePath::Address),
    access_rule("typed surface read", CodeOperation::Load, CodePath::Image),
    access_rule("typed surface write", CodeOperation::Store, CodePath::Image),
    access_rule("typed_read", CodeOperation::Load, CodePath::Image),
    access_rule("typed_write", CodeOperation::Store, CodePath::Image),
    access_rule("typed_atomic", CodeOperation::Atomic, CodePath::Image),
    access_rule("load_quad.tgm", CodeOperation::Load, CodePath::Image),
    access_rule("store_quad.tgm", CodeOperation::Store, CodePath::Image),
    access_rule("atomic.tgm", CodeOperation::Atomic, CodePath::Image),
    LineRule { pattern: "jmpi", kind: Some(LineKind::Jump), description: "" },
    LineRule { pattern: "while", kind: Some(LineKind::Jump), description: "" },
    LineRule { pattern: "endif", kind: Some(LineKind::Label), description: "" },
    note_rule("evict", "drops lines of the first-level cache"),
    note_rule("tile", "scope: the tile, which is the device"),
    note_rule("local", "scope: the core"),
    note_rule("L1UC", "past the first-level cache"),
    note_rule(".uc.", "past the first-level cache"),
    note_rule(".dst}", "waits for the answer of a message"),
    note_rule(".src}", "waits until a message has read its registers"),
];

/// A fence is a separate message. From Gen12 on, messages are tracked by tokens: the fence is sent after
/// earlier loads have returned, and awaited before later ones are sent.
const FENCE: &[&str] = &["fence.ugm", "( fence,", "memory_fence", "mfence"];
const TOKEN_TARGETS: &[&str] = &["gen12", "xe"];
const ANY_OPERATION: &[CodeOperation] = &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic];
const SOURCE: &str =
    "Intel's Programmer's Reference Manuals, Memory Fence; SWSB; what ANV of Mesa 25.0 emits";
const ORDER_REQUIREMENTS: &[OrderRequirement] = &[
    OrderRequirement {
        order: Order::Acquire,
        first_operations: &[CodeOperation::Load, CodeOperation::Atomic],
        targets: TOKEN_TARGETS,
        steps: &[LOAD_RETURNED, required_between(FENCE, "fence after the first access"), FENCE_COMPLETED],
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Acquire,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: &[required_between(FENCE, "fence after the first access")],
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: &[required_between(FENCE, "fence after the first access")],
        source: SOURCE,
    },
];

const LOAD_RETURNED: RequirementPart = RequirementPart {
    place: RequirementPosition::Between,
    alternatives: &["sync.allwr", "sync allwr"],
    // The token of the first access would suffice.
    uncertain_alternatives: &["sync"],
    if_missing: MissingOperation::Weakened,
    description: "wait for the first access",
};
const FENCE_COMPLETED: RequirementPart = RequirementPart {
    place: RequirementPosition::Between,
    alternatives: &[".dst"],
    uncertain_alternatives: &["sync"],
    if_missing: MissingOperation::Weakened,
    description: "wait for the fence's answer",
};

/// Returns the binding table entry of each line.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let words = ["bti[", "bti(", "BTI ", "Surface = "];
    lines.iter().map(|line| words.iter().find_map(|word| number_after(line, word))).collect()
}

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    if text.is_empty()
        || text.starts_with("//")
        || text.starts_with("Push constant")
        || text.starts_with("RANGE")
    {
        return None;
    }
    let kind = match classify_line(RULES, text) {
        _ if text.ends_with(':') => LineKind::Label,
        // A message to the workgroup's memory.
        LineKind::Access(access) if text.contains(".slm.") || text.contains("slm MsgDesc") => {
            LineKind::Access(CodeAccess { path: CodePath::Workgroup, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}

/// Joins a message descriptor with the previous instruction.
fn join_descriptors(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let is_continuation = line.starts_with("                ") && line.contains("MsgDesc");
        joined.push_str(if is_continuation { " " } else { "\n" });
        joined.push_str(line.trim());
    }
    joined
}
