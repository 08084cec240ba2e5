//! Selectors on a list of devices.

use device::{ListedDevice, Selector, SelectorError};
use plan::{Capabilities, DeviceError, Identity};

/// Name, device name, kind, driver information, memory model; in listing order.
const DEVICES: [(&str, &str, &str, &str, bool); 5] = [
    ("Old Card", "Old Card", "discrete", "vendor 1.0", false),
    ("Radeon RX 7900", "Radeon RX 7900", "discrete", "Mesa 25.0.7", true),
    ("Iris Xe", "Iris Xe", "integrated", "Mesa 25.0.7", true),
    ("lavapipe", "llvmpipe (LLVM 15.0.6, 256 bits)", "cpu", "Mesa 22.3.6 (LLVM 15.0.6)", true),
    ("swiftshader", "SwiftShader Device (Subzero)", "cpu", "", true),
];

fn devices() -> Vec<ListedDevice> {
    let rows = DEVICES.iter().enumerate();
    rows.map(|(index, (name, device_name, kind, info, memory_model))| ListedDevice {
        index,
        identity: Identity {
            name: (*name).to_owned(),
            device_name: (*device_name).to_owned(),
            kind: (*kind).to_owned(),
            driver_info: (*info).to_owned(),
            uuid: format!("{index:032x}"),
            ..Identity::default()
        },
        capabilities: Capabilities { memory_model: *memory_model, ..Capabilities::default() },
    })
    .collect()
}

#[test]
fn selectors_choose() {
    let devices = devices();
    let table = [
        ("lavapipe", Some(3)),
        ("LAVAPIPE", Some(3)),
        ("swiftshader", Some(4)),
        ("gpu", Some(0)),
        ("0", Some(0)),
        ("4", Some(4)),
        ("5", None),
        ("00000000000000000000000000000002", Some(2)),
        ("00000000-0000-0000-0000-000000000002", Some(2)),
        ("0000000000000000000000000000000f", None),
        ("radeon", Some(1)),
        ("llvm 15", Some(3)),
        ("mesa 25", Some(1)),
        ("subzero", Some(4)),
        ("nvidia", None),
    ];
    for (text, expected) in table {
        let selector: Selector = text.parse().unwrap();
        let chosen = selector.choose_from(&devices).map(|device| device.index);
        assert_eq!(chosen.clone().ok(), expected, "{text}");
        if expected.is_none() {
            assert!(matches!(chosen, Err(DeviceError::NoSuchDevice(_))), "{text}");
        }
        let printed: Selector = selector.to_string().parse().unwrap();
        assert_eq!(printed, selector, "{text}");
    }
}

#[test]
fn without_a_selector_the_best_device_with_the_memory_model_is_taken() {
    let devices = devices();
    let best = |devices: &[ListedDevice]| Selector::Best.choose_from(devices).map(|device| device.index).ok();
    assert_eq!(best(&devices), Some(1));
    assert_eq!(best(&devices[..1]), Some(0));
    assert_eq!(best(&[]), None);
    // Software drivers are not GPUs.
    assert!(Selector::Gpu.choose_from(&devices[3..]).is_err());
}

#[test]
fn device_types_are_distinguished() {
    let table = [
        ("sim", SelectorError::NotVulkan("sim".to_owned())),
        ("radv:gfx1100", SelectorError::NotVulkan("radv:gfx1100".to_owned())),
        ("", SelectorError::Empty),
        ("  ", SelectorError::Empty),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<Selector>(), Err(expected), "{text:?}");
    }
}
