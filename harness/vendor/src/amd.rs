//! AMD: Mesa's RADV on its null back end or a shim; LLVM's assembly, or ACO's output without a disassembler.

use std::collections::BTreeMap;

use crate::driver::{ChipFamily, CompileMethod, DescriptorLayout, TextSource, Vendor};
use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::order::{MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition};
use crate::text::{DisassemblerDialect, LineRule, note_rule};

/// Mesa's RADV.
pub const RADV: Vendor = Vendor {
    selector_prefix: "radv",
    display_name: "RADV",
    driver_file_prefix: "radeon_icd",
    library: "libvulkan_radeon.so",
    driver_id: 3,
    // Mesa 26.1 removed the null back end.
    compile_methods: &[
        CompileMethod::NullBackEnd { variable: "RADV_FORCE_FAMILY", marker: "Null hardware" },
        CompileMethod::Shim {
            library: "libamdgpu_noop_drm_shim.so",
            variable: Some("AMDGPU_GPU_ID"),
            has_chip_names: true,
        },
    ],
    install: "Debian: mesa-vulkan-drivers; from Mesa 26.1, which has no null back end, mesa-drm-shim as well",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: Some(("RADV_DEBUG", "nocache")),
    text_source: TextSource::Properties,
    chip_prefix: Some("(RADV "),
    families: FAMILIES,
    dialect: &DIALECT,
    descriptors: Some(DESCRIPTORS),
};

/// RADV's descriptor layout.
pub const DESCRIPTORS: DescriptorLayout = DescriptorLayout { buffer_bytes: 16, image_bytes: 32 };

/// Family names in Mesa versions (`ac_get_family_name` in `src/amd/common`), with LLVM's targets.
const FAMILIES: &[ChipFamily] = &[
    amd_family("tahiti", &[], "gfx600"),
    amd_family("pitcairn", &[], "gfx601"),
    amd_family("verde", &[], "gfx601"),
    amd_family("oland", &[], "gfx601"),
    amd_family("hainan", &[], "gfx602"),
    amd_family("bonaire", &[], "gfx704"),
    amd_family("hawaii", &[], "gfx701"),
    amd_family("kaveri", &[], "gfx700"),
    amd_family("kabini", &[], "gfx703"),
    amd_family("iceland", &[], "gfx802"),
    amd_family("tonga", &[], "gfx802"),
    amd_family("fiji", &[], "gfx803"),
    amd_family("polaris10", &[], "gfx803"),
    amd_family("polaris11", &[], "gfx803"),
    amd_family("polaris12", &[], "gfx803"),
    amd_family("vegam", &[], "gfx803"),
    amd_family("carrizo", &[], "gfx801"),
    amd_family("stoney", &[], "gfx810"),
    amd_family("vega10", &[], "gfx900"),
    amd_family("vega12", &[], "gfx904"),
    amd_family("vega20", &[], "gfx906"),
    amd_family("raven", &[], "gfx902"),
    amd_family("raven2", &[], "gfx909"),
    amd_family("renoir", &[], "gfx90c"),
    amd_family("mi100", &["arcturus"], "gfx908"),
    amd_family("mi200", &["aldebaran"], "gfx90a"),
    amd_family("gfx940", &[], "gfx940"),
    amd_family("navi10", &[], "gfx1010"),
    amd_family("navi12", &[], "gfx1011"),
    amd_family("navi14", &[], "gfx1012"),
    amd_family("navi21", &[], "gfx1030"),
    amd_family("navi22", &[], "gfx1031"),
    amd_family("navi23", &[], "gfx1032"),
    amd_family("navi24", &[], "gfx1034"),
    amd_family("vangogh", &[], "gfx1033"),
    amd_family("rembrandt", &[], "gfx1035"),
    amd_family("raphael_mendocino", &["gfx1036", "raphael"], "gfx1036"),
    amd_family("navi31", &["gfx1100"], "gfx1100"),
    amd_family("navi32", &["gfx1101"], "gfx1101"),
    amd_family("navi33", &["gfx1102"], "gfx1102"),
    amd_family("phoenix", &["gfx1103_r1"], "gfx1103"),
    amd_family("phoenix2", &["gfx1103_r2"], "gfx1103"),
    amd_family("gfx1150", &[], "gfx1150"),
    amd_family("gfx1151", &[], "gfx1151"),
    amd_family("gfx1152", &[], "gfx1152"),
    amd_family("gfx1153", &[], "gfx1153"),
    amd_family("gfx1200", &[], "gfx1200"),
    amd_family("gfx1201", &[], "gfx1201"),
];

const fn amd_family(name: &'static str, others: &'static [&'static str], target: &'static str) -> ChipFamily {
    ChipFamily { name, aliases: others, target, shim_value: name }
}

/// The dialect of its machine code.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "amd",
    preprocess: str::to_owned,
    read_line,
    rules: RULES,
    has_constant_addresses: true,
    resource_numbers,
    order_requirements: ORDER_REQUIREMENTS,
    // ACO of Mesa 26 omits the wait on GFX11.
    workgroup_requirements: &[OrderRequirement {
        order: Order::Release,
        first_operations: &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic],
        targets: &[],
        steps: &[RequirementPart {
            place: RequirementPosition::Between,
            alternatives: &[
                "lgkmcnt(0)",
                "s_wait_dscnt 0x0",
                "s_wait_loadcnt_dscnt 0x0",
                "s_wait_storecnt_dscnt 0x0",
            ],
            uncertain_alternatives: &["lgkmcnt(", "dscnt"],
            if_missing: MissingOperation::Unknown,
            description: "wait for the workgroup's memory",
        }],
        source: AMDGPU_GUIDE,
    }],
    barriers: &["s_barrier"],
    recognizes_memory: true,
    fillers: &["s_nop", "s_delay_alu", "s_clause", "s_code_end", "s_inst_prefetch"],
    register_prefixes: &['s', 'v', 'a'],
    named_registers: &["vcc", "exec", "m0", "vcc_lo", "vcc_hi", "null", "off", "scc"],
    block_prefix: "BB",
};

/// "Memory Model" of LLVM's User Guide for AMDGPU Backend, tables by generation, for the scopes agent and
/// system.
const AMDGPU_GUIDE: &str = "LLVM, User Guide for AMDGPU Backend, Memory Model";
/// Vector and scalar loads have separate counters.
const LOAD_WAIT: RequirementPart = RequirementPart {
    place: RequirementPosition::Between,
    alternatives: &["vmcnt(0)", "s_wait_loadcnt 0x0", "s_wait_loadcnt_dscnt 0x0", "s_wait_kmcnt 0x0"],
    uncertain_alternatives: &["vmcnt(", "lgkmcnt(", "s_wait_loadcnt", "s_wait_kmcnt"],
    if_missing: MissingOperation::Lost,
    description: "wait for the first access",
};
const BEFORE_GFX10: &[&str] =
    &["gfx6", "gfx7", "gfx8", "gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"];
const ORDER_REQUIREMENTS: &[OrderRequirement] = &[
    OrderRequirement {
        order: Order::Acquire,
        first_operations: &[CodeOperation::Load],
        targets: BEFORE_GFX10,
        steps: &[LOAD_WAIT, cache_bypassing_load(&[" glc", "buffer_wbinvl1"])],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Acquire,
        first_operations: &[CodeOperation::Load],
        targets: &["gfx10"],
        steps: &[LOAD_WAIT, cache_bypassing_load(&["glc dlc", "buffer_gl1_inv"])],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Acquire,
        first_operations: &[CodeOperation::Load],
        targets: &["gfx11"],
        steps: &[LOAD_WAIT, cache_bypassing_load(&[" glc", "buffer_gl1_inv"])],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Acquire,
        first_operations: &[CodeOperation::Load],
        targets: &["gfx12"],
        steps: &[LOAD_WAIT, cache_bypassing_load(&["scope:SCOPE_DEV", "scope:SCOPE_SYS"])],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: &[CodeOperation::Load],
        targets: &[],
        steps: &[LOAD_WAIT],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: &[CodeOperation::Store],
        targets: BEFORE_GFX10,
        steps: &[LOAD_WAIT],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: &[CodeOperation::Store],
        targets: &["gfx10", "gfx11"],
        steps: &[store_wait(&["vscnt null, 0x0", "vscnt(0)"])],
        source: AMDGPU_GUIDE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: &[CodeOperation::Store],
        targets: &["gfx12"],
        steps: &[store_wait(&["s_wait_storecnt 0x0", "s_wait_storecnt_dscnt 0x0"])],
        source: AMDGPU_GUIDE,
    },
];

/// A later load must bypass caches that do not see stores of other waves.
const fn cache_bypassing_load(any: &'static [&'static str]) -> RequirementPart {
    RequirementPart {
        place: RequirementPosition::SecondLoad,
        alternatives: any,
        uncertain_alternatives: &[],
        if_missing: MissingOperation::Weakened,
        description: "a load that bypasses the caches",
    }
}

const fn store_wait(any: &'static [&'static str]) -> RequirementPart {
    RequirementPart {
        place: RequirementPosition::Between,
        alternatives: any,
        uncertain_alternatives: &["vscnt", "storecnt"],
        if_missing: MissingOperation::Lost,
        description: "wait for the first access",
    }
}

/// Descriptions only; [`classify_text`] determines the kind of a line.
const RULES: &[LineRule] = &[
    note_rule("vmcnt(0)", "wait until all earlier loads have returned, before GFX10 stores too"),
    note_rule("vscnt", "wait until earlier stores are done"),
    note_rule("loadcnt 0x0", "wait until all earlier loads have returned"),
    note_rule("storecnt 0x0", "wait until earlier stores are done"),
    note_rule("lgkmcnt(0)", "wait for scalar loads and the workgroup's memory"),
    note_rule("s_barrier", "control barrier"),
    note_rule("buffer_gl0_inv", "drops lines of the compute unit's cache"),
    note_rule("buffer_gl1_inv", "drops lines of the shader array's cache"),
    note_rule("buffer_wbinvl1", "drops lines of the compute unit's cache"),
    note_rule("global_inv", "drops lines of caches up to a scope"),
    note_rule("global_wb", "writes lines of caches back up to a scope"),
    note_rule(" glc", "past the compute unit's cache"),
    note_rule(" dlc", "past the shader array's cache"),
    note_rule("scope:SCOPE_SE", "scope: the shader engine"),
    note_rule("scope:SCOPE_DEV", "scope: the device"),
    note_rule("scope:SCOPE_SYS", "scope: the system"),
];

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.split([';', '/']).next().unwrap_or(line).trim();
    (!text.is_empty()).then(|| (text, classify_text(text)))
}

/// Returns the mnemonic of a line; in ACO's format it follows the definitions.
fn line_mnemonic(text: &str) -> &str {
    let text = text.rsplit_once(" = ").map_or(text, |(_, instruction)| instruction);
    let word = text.split(' ').next().unwrap_or(text);
    word.strip_prefix("p_").map_or(word, |_| word)
}

fn classify_text(text: &str) -> LineKind {
    if text.ends_with(':') || text.starts_with("BB") {
        return LineKind::Label;
    }
    let mnemonic = line_mnemonic(text);
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    if has_prefix(&[
        "s_waitcnt",
        "s_wait_",
        "s_barrier",
        "buffer_gl",
        "buffer_wb",
        "buffer_inv",
        "global_inv",
        "global_wb",
        "s_dcache",
        "s_gl1_inv",
    ]) {
        return LineKind::Order;
    }
    if has_prefix(&["s_cbranch", "s_branch", "s_setpc"]) {
        return LineKind::Jump;
    }
    let path = if has_prefix(&["buffer_", "s_buffer_load"]) {
        CodePath::Buffer
    } else if has_prefix(&["global_", "flat_"]) {
        CodePath::Address
    } else if has_prefix(&["image_", "tbuffer_"]) {
        CodePath::Image
    } else if has_prefix(&[
        "ds_read",
        "ds_write",
        "ds_load",
        "ds_store",
        "ds_add",
        "ds_sub",
        "ds_and",
        "ds_or",
        "ds_xor",
        "ds_min",
        "ds_max",
        "ds_cmp",
        "ds_wrxchg",
        "ds_storexchg",
        "ds_rsub",
        "ds_mskor",
        "ds_inc",
        "ds_dec",
    ]) {
        CodePath::Workgroup
    } else if has_prefix(&["s_load"]) {
        return LineKind::Descriptor;
    } else {
        return LineKind::Other;
    };
    let operation = if path == CodePath::Workgroup {
        match mnemonic {
            _ if mnemonic.starts_with("ds_storexchg") => CodeOperation::Atomic,
            _ if has_prefix(&["ds_read", "ds_load"]) => CodeOperation::Load,
            _ if has_prefix(&["ds_write", "ds_store"]) => CodeOperation::Store,
            _ => CodeOperation::Atomic,
        }
    } else if mnemonic.contains("atomic") {
        CodeOperation::Atomic
    } else if mnemonic.contains("store") {
        CodeOperation::Store
    } else {
        CodeOperation::Load
    };
    // Formats and 16-bit halves: `buffer_load_format_x` uses the texel path.
    let path = if mnemonic.contains("format") { CodePath::Image } else { path };
    LineKind::Access(CodeAccess { operation, path, offset: constant_offset(text) })
}

/// Returns the byte offset of each access's descriptor in its set, traced from its load
/// (`s_load_b128 s[4:7], s[2:3], 0x10`) through straight-line code.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let mut descriptor_of_registers: BTreeMap<String, u64> = BTreeMap::new();
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let (_, operands) = line.split_once(' ').unwrap_or_default();
        let operands: Vec<&str> = operands.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let kind = classify_text(line);
        let descriptor = operands.iter().skip(1).find_map(|operand| descriptor_of_registers.get(*operand));
        found.push(descriptor.copied().filter(|_| matches!(kind, LineKind::Access(_))));
        let (LineKind::Descriptor, [target, _, offset, ..]) = (kind, &operands[..]) else { continue };
        let bounds = target.strip_prefix("s[").and_then(|range| range.strip_suffix(']')?.split_once(':'));
        let Some((Ok(first), Ok(last))) = bounds.map(|(one, two)| (one.parse::<u64>(), two.parse::<u64>()))
        else {
            continue;
        };
        let offset = if *offset == "null" { Some(0) } else { number(offset) };
        // A load of 8 or 16 registers reads an image's descriptor, or those of several buffers.
        let parts = (first..=last).step_by(4).map(|part| (part, part + 3));
        for (start, end) in parts.chain([(first, last)]) {
            let registers = format!("s[{start}:{end}]");
            match offset {
                Some(offset) => descriptor_of_registers.insert(registers, offset + 4 * (start - first)),
                None => descriptor_of_registers.remove(&registers),
            };
        }
    }
    found
}

/// Returns a decimal or hexadecimal number.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the constant of an address: `offset:256`, or the last operand of a scalar load.
fn constant_offset(text: &str) -> u64 {
    let offset_text = text.split([' ', ',']).find_map(|word| word.strip_prefix("offset:"));
    if let Some(named) = offset_text {
        return number(named).unwrap_or(0);
    }
    if line_mnemonic(text).starts_with("s_buffer_load") {
        let operand = text.split(", ").nth(2).and_then(|operand| operand.split(' ').next());
        return operand.and_then(number).unwrap_or(0);
    }
    0
}
