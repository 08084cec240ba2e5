//! NVIDIA: Mesa's NVK on the nouveau shim; the assembly of its compiler NAK.

use std::collections::BTreeMap;

use crate::driver::{ChipFamily, CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::order::{
    MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition, required_between,
};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, note_rule, order_rule};

/// Mesa's NVK.
pub const NVK: Vendor = Vendor {
    selector_prefix: "nvk",
    display_name: "NVK",
    driver_id: 24,
    driver_file_prefix: "nouveau_icd",
    library: "libvulkan_nouveau.so",
    compile_methods: &[CompileMethod::Shim {
        library: "libnouveau_noop_drm_shim.so",
        variable: Some("NOUVEAU_CHIPSET"),
        has_chip_names: false,
    }],
    install: "Debian: mesa-vulkan-drivers and mesa-drm-shim, from Mesa 25.0",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: None,
    text_source: TextSource::Properties,
    chip_prefix: None,
    families: FAMILIES,
    dialect: &DIALECT,
    descriptors: None,
};

/// Chips by their codes in the kernel driver. The shim of Mesa 26.2 supports none later than Ampere, and
/// Kepler has no memory model.
const FAMILIES: &[ChipFamily] = &[
    coded_family("gm107", &["117"], "sm_50", "117"),
    coded_family("gm108", &["118"], "sm_50", "118"),
    coded_family("gm200", &["120"], "sm_52", "120"),
    coded_family("gm204", &["124"], "sm_52", "124"),
    coded_family("gm206", &["126"], "sm_52", "126"),
    coded_family("gm20b", &["12b"], "sm_53", "12b"),
    coded_family("gp100", &["130"], "sm_60", "130"),
    coded_family("gp102", &["132"], "sm_61", "132"),
    coded_family("gp104", &["134"], "sm_61", "134"),
    coded_family("gp106", &["136"], "sm_61", "136"),
    coded_family("gp107", &["137"], "sm_61", "137"),
    coded_family("gp108", &["138"], "sm_61", "138"),
    coded_family("gp10b", &["13b"], "sm_62", "13b"),
    coded_family("gv100", &["140"], "sm_70", "140"),
    coded_family("tu102", &["162"], "sm_75", "162"),
    coded_family("tu104", &["164"], "sm_75", "164"),
    coded_family("tu106", &["166"], "sm_75", "166"),
    coded_family("tu117", &["167"], "sm_75", "167"),
    coded_family("tu116", &["168"], "sm_75", "168"),
    coded_family("ga100", &["170"], "sm_80", "170"),
    coded_family("ga102", &["172"], "sm_86", "172"),
    coded_family("ga103", &["173"], "sm_86", "173"),
    coded_family("ga104", &["174"], "sm_86", "174"),
    coded_family("ga106", &["176"], "sm_86", "176"),
    coded_family("ga107", &["177"], "sm_86", "177"),
];

/// The dialect of NAK.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "nak",
    rules: RULES,
    has_constant_addresses: false,
    resource_numbers,
    order_requirements: ORDER_REQUIREMENTS,
    workgroup_requirements: &[OrderRequirement {
        order: Order::Release,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: &[],
        source: "PTX ISA, bar: orders the memory accesses of the threads that participate",
    }],
    barriers: &["bar.sync"],
    fillers: &["nop"],
    register_prefixes: &['r', 'p'],
    named_registers: &["rZ", "pT", "urZ"],
    block_prefix: "L",
    ..DisassemblerDialect::new("nak", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("membar.sc..gpu", "fence of the GPU, sequentially consistent"),
    order_rule("membar.sc..sys", "fence of the system, sequentially consistent"),
    order_rule("membar.sc..cta", "fence of the workgroup, sequentially consistent"),
    order_rule("membar", "fence"),
    order_rule("cctl.ivall", "drops all lines of the first-level cache"),
    order_rule("cctl", "cache control"),
    order_rule("bar.sync", "control barrier"),
    order_rule("bar.arv", "control barrier, arrival"),
    order_rule("depbar", "wait for a scoreboard"),
    order_rule("ccctl", "cache control of constants"),
    access_rule("atom.", CodeOperation::Atomic, CodePath::Address),
    access_rule("red.", CodeOperation::Atomic, CodePath::Address),
    access_rule("atoms.", CodeOperation::Atomic, CodePath::Workgroup),
    access_rule("ld.", CodeOperation::Load, CodePath::Address),
    access_rule("st.", CodeOperation::Store, CodePath::Address),
    access_rule("suld", CodeOperation::Load, CodePath::Image),
    access_rule("sust", CodeOperation::Store, CodePath::Image),
    access_rule("suatom", CodeOperation::Atomic, CodePath::Image),
    LineRule { pattern: "ldc", kind: Some(LineKind::Descriptor), description: "" },
    LineRule { pattern: "bra ", kind: Some(LineKind::Jump), description: "" },
    note_rule(".strong.gpu", "coherent in the GPU"),
    note_rule(".strong.sys", "coherent in the system"),
    note_rule(".strong.cta", "coherent in the workgroup"),
    note_rule(".constant", "as if constant: it need not observe writes of others"),
    note_rule(".weak", "not coherent"),
];

/// The fence in NVIDIA's mapping of scoped orders to instructions. No source states its effect on loads that
/// are declared constant.
const FENCE: &[RequirementPart] = &[
    required_between(&["membar.sc..gpu", "membar.sc..sys"], "fence of the GPU"),
    RequirementPart {
        place: RequirementPosition::OnNeither,
        alternatives: &[".constant"],
        uncertain_alternatives: &[],
        if_missing: MissingOperation::Unknown,
        description: "loads that are not marked as constant memory",
    },
];
const ANY_OPERATION: &[CodeOperation] = &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic];
const SOURCE: &str = "PTX ISA, Memory Consistency Model, fence.sc; what NVK of Mesa 25.0 to 26.2 emits";
const ORDER_REQUIREMENTS: &[OrderRequirement] = &[
    OrderRequirement {
        order: Order::Acquire,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: FENCE,
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: FENCE,
        source: SOURCE,
    },
];

/// Returns the descriptor of each address, traced from its load (`c[0x1][+0x10]`) through registers in
/// straight-line code.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let mut descriptor_of_register: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let (target, operation) = line.split_once(" = ").unwrap_or(("", line));
        let is_access = matches!(read_line(line), Some((_, LineKind::Access(_))));
        let address = operation.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let operands = if is_access { address.map_or("", |(address, _)| address) } else { operation };
        let mut sources = descriptor_indices(operands).map(Some).collect::<Vec<_>>();
        sources.extend(
            register_names(operands).filter_map(|register| descriptor_of_register.get(register).copied()),
        );
        // A value computed from two descriptors has no single one.
        let first = sources.first().copied();
        let descriptor =
            first.map(|first| if sources.iter().all(|one| *one == first) { first } else { None });
        found.push(descriptor.flatten().filter(|_| is_access));
        for register in register_names(target) {
            match descriptor.filter(|_| !is_access) {
                Some(of) => descriptor_of_register.insert(register, of),
                None => descriptor_of_register.remove(register),
            };
        }
    }
    found
}

fn register_names(text: &str) -> impl Iterator<Item = &str> {
    let is_register = |word: &&str| {
        let number = word.strip_prefix('u').unwrap_or(word).strip_prefix('r');
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_register)
}

/// Returns the descriptor indices among the operands.
fn descriptor_indices(text: &str) -> impl Iterator<Item = u64> {
    text.split("c[0x1][").skip(1).filter_map(|rest| {
        let offset = rest.split(']').next()?.trim_start_matches('+').strip_prefix("0x")?;
        u64::from_str_radix(offset, 16).ok().map(|offset| offset / DESCRIPTOR_BYTES)
    })
}

/// The size of a storage buffer descriptor.
const DESCRIPTOR_BYTES: u64 = 16;

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.split("//").next().unwrap_or(line).trim();
    let is_frame = text.starts_with("block") || text.starts_with('}') || text.starts_with("sm:");
    if text.is_empty() {
        return None;
    }
    let kind = match classify_line(RULES, text) {
        _ if is_frame => LineKind::Label,
        LineKind::Access(access) if text.contains(".shared") => {
            LineKind::Access(CodeAccess { path: CodePath::Workgroup, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}
