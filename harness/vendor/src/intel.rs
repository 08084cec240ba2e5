//! Intel: Mesa's ANV, and hasvk for chips before Skylake, on a shim that no distribution packages.
//!
//! Their assembly is read in the formats before and since Mesa 26.2.

use crate::order::{Need, NeedPart, NeedPlace, Order, Without, between, number_behind};
use crate::text::{CodeAccess, Dialect, LineKind, LineRule, Operation, Path, access, kind_by, note, order};
use crate::{CompileWay, TextSource, Vendor, chip};

/// The compile method that both drivers share.
const WAY: CompileWay = CompileWay::Shim {
    library: "libintel_noop_drm_shim.so",
    variable: Some("INTEL_STUB_GPU_PLATFORM"),
    names_chips: false,
};
const INSTALL: &str =
    "Debian: mesa-vulkan-drivers; the shim is in no package: ci/compilers builds it from Mesa's source";

/// Mesa's ANV, from Skylake on.
pub const ANV: Vendor = Vendor {
    word: "anv",
    driver: "ANV",
    driver_id: 6,
    driver_file: "intel_icd",
    library: "libvulkan_intel.so",
    ways: &[WAY],
    install: INSTALL,
    settings: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_word: None,
    text_from: TextSource::Properties,
    before_chip: None,
    families: &[
        chip("skl", "gen9"),
        chip("bxt", "gen9"),
        chip("kbl", "gen9"),
        chip("aml", "gen9"),
        chip("glk", "gen9"),
        chip("cfl", "gen9"),
        chip("whl", "gen9"),
        chip("cml", "gen9"),
        chip("icl", "gen11"),
        chip("ehl", "gen11"),
        chip("jsl", "gen11"),
        chip("tgl", "gen12"),
        chip("rkl", "gen12"),
        chip("dg1", "gen12"),
        chip("adl", "gen12"),
        chip("sg1", "gen12"),
        chip("rpl", "gen12"),
        chip("dg2", "xe-hpg"),
        chip("mtl", "xe-lpg"),
        chip("arl", "xe-lpg"),
        chip("lnl", "xe2"),
        chip("bmg", "xe2"),
        chip("ptl", "xe3"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// Mesa's hasvk, before Skylake.
pub const HASVK: Vendor = Vendor {
    word: "hasvk",
    driver: "hasvk",
    driver_file: "intel_hasvk_icd",
    library: "libvulkan_intel_hasvk.so",
    families: &[
        chip("ivb", "gen7"),
        chip("byt", "gen7"),
        chip("hsw", "gen7"),
        chip("bdw", "gen8"),
        chip("chv", "gen8"),
    ],
    ..ANV
};

/// The dialect of their disassemblers. In the older format, an instruction may have a second line with its
/// message descriptor.
pub const DIALECT: Dialect = Dialect {
    name: "gen",
    prepare: join,
    rules: RULES,
    constant_addresses: false,
    places,
    needs: NEEDS,
    fillers: &["nop"],
    registers: &['r', 'g'],
    named_registers: &["null", "nullUD"],
    block: "LABEL",
    ..Dialect::new("gen", read)
};

const RULES: &[LineRule] = &[
    order("fence.", "fence"),
    order("( fence,", "fence"),
    order("memory_fence", "fence"),
    order("memory fence", "fence"),
    order("mfence", "fence"),
    order("sync.allwr", "wait until all writes to registers are there: every earlier load has returned"),
    order("sync allwr", "wait until all writes to registers are there: every earlier load has returned"),
    order("sync.allrd", "wait until all sources of messages are read"),
    order("sync allrd", "wait until all sources of messages are read"),
    order("sync.bar", "control barrier"),
    order("sync bar", "control barrier"),
    order("sync.nop", "wait for the tokens that are named"),
    order("sync nop", "wait for the tokens that are named"),
    order("barrier", "control barrier"),
    access("atomic_", Operation::Atomic, Path::Address),
    access("MsgDesc: ( atomic", Operation::Atomic, Path::Address),
    access("load.ugm", Operation::Load, Path::Address),
    access("store.ugm", Operation::Store, Path::Address),
    access("load.slm", Operation::Load, Path::Workgroup),
    access("store.slm", Operation::Store, Path::Workgroup),
    access("ugm MsgDesc: ( load", Operation::Load, Path::Address),
    access("ugm MsgDesc: ( store", Operation::Store, Path::Address),
    access("slm MsgDesc: ( load", Operation::Load, Path::Workgroup),
    access("slm MsgDesc: ( store", Operation::Store, Path::Workgroup),
    access("untyped_read", Operation::Load, Path::Address),
    access("untyped_write", Operation::Store, Path::Address),
    access("untyped_atomic", Operation::Atomic, Path::Address),
    access("untyped surface read", Operation::Load, Path::Address),
    access("untyped surface write", Operation::Store, Path::Address),
    access("untyped atomic", Operation::Atomic, Path::Address),
    access("typed surface read", Operation::Load, Path::Image),
    access("typed surface write", Operation::Store, Path::Image),
    access("typed_read", Operation::Load, Path::Image),
    access("typed_write", Operation::Store, Path::Image),
    access("typed_atomic", Operation::Atomic, Path::Image),
    access("load_quad.tgm", Operation::Load, Path::Image),
    access("store_quad.tgm", Operation::Store, Path::Image),
    access("atomic.tgm", Operation::Atomic, Path::Image),
    LineRule { has: "jmpi", kind: Some(LineKind::Jump), words: "" },
    LineRule { has: "while", kind: Some(LineKind::Jump), words: "" },
    LineRule { has: "endif", kind: Some(LineKind::Label), words: "" },
    note("evict", "drops lines of the first-level cache"),
    note("tile", "scope: the tile, which is the device"),
    note("local", "scope: the core"),
    note("L1UC", "past the first-level cache"),
    note(".uc.", "past the first-level cache"),
    note(".dst}", "waits for the answer of a message"),
    note(".src}", "waits until a message has read its registers"),
];

/// A fence is a separate message. From Gen12 on, messages are tracked by tokens: the fence is sent after
/// earlier loads have returned, and awaited before later ones are sent.
const FENCE: &[&str] = &["fence.ugm", "( fence,", "memory_fence", "mfence"];
const TOKENS: &[&str] = &["gen12", "xe"];
const ALL: &[Operation] = &[Operation::Load, Operation::Store, Operation::Atomic];
const SOURCE: &str =
    "Intel's Programmer's Reference Manuals, Memory Fence; SWSB; what ANV of Mesa 25.0 emits";
const NEEDS: &[Need] = &[
    Need {
        order: Order::Acquire,
        first: &[Operation::Load, Operation::Atomic],
        targets: TOKENS,
        steps: &[RETURNED, between(FENCE, "fence behind the first access"), ANSWERED],
        source: SOURCE,
    },
    Need {
        order: Order::Acquire,
        first: ALL,
        targets: &[],
        steps: &[between(FENCE, "fence behind the first access")],
        source: SOURCE,
    },
    Need {
        order: Order::Release,
        first: ALL,
        targets: &[],
        steps: &[between(FENCE, "fence behind the first access")],
        source: SOURCE,
    },
];

const RETURNED: NeedPart = NeedPart {
    place: NeedPlace::Between,
    any: &["sync.allwr", "sync allwr"],
    // The token of the first access alone would suffice.
    perhaps: &["sync"],
    without: Without::Weakened,
    words: "wait for the first access",
};
const ANSWERED: NeedPart = NeedPart {
    place: NeedPlace::Between,
    any: &[".dst"],
    perhaps: &["sync"],
    without: Without::Weakened,
    words: "wait for the fence's answer",
};

/// Returns the binding table entry of each line.
fn places(lines: &[&str]) -> Vec<Option<u64>> {
    let words = ["bti[", "bti(", "BTI ", "Surface = "];
    lines.iter().map(|line| words.iter().find_map(|word| number_behind(line, word))).collect()
}

fn read(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    if text.is_empty()
        || text.starts_with("//")
        || text.starts_with("Push constant")
        || text.starts_with("RANGE")
    {
        return None;
    }
    let kind = match kind_by(RULES, text) {
        _ if text.ends_with(':') => LineKind::Label,
        // A message to the workgroup's memory.
        LineKind::Access(access) if text.contains(".slm.") || text.contains("slm MsgDesc") => {
            LineKind::Access(CodeAccess { path: Path::Workgroup, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}

/// Joins a message descriptor with the previous instruction.
fn join(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let continues = line.starts_with("                ") && line.contains("MsgDesc");
        joined.push_str(if continues { " " } else { "\n" });
        joined.push_str(line.trim());
    }
    joined
}
