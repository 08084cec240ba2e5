//! Shapes of workgroups and counts of workgroups.

use shaders::variant::{WorkgroupCount, WorkgroupShape};

#[test]
fn names_of_shapes_round_trip() {
    for (word, shape) in WorkgroupShape::EXAMPLES {
        assert_eq!(word.parse(), Ok(shape));
        assert_eq!(shape.to_string(), word);
    }
    for word in ["size-1024", "size-8x4", "size-1x64", "size-1x1x64", "size-4x1x4"] {
        assert_eq!(word.parse::<WorkgroupShape>().unwrap().to_string(), word);
    }
    assert_eq!("size-8x1x1".parse::<WorkgroupShape>().unwrap().to_string(), "size-8");
    for word in ["", "size-", "size-0", "size-07", "size-+7", "size-1x2x3x4", "size-8x", "33", "size-65536"] {
        assert!(word.parse::<WorkgroupShape>().is_err(), "{word}");
    }
}

#[test]
fn the_limit_is_that_of_the_device() {
    assert_eq!(WorkgroupShape::Limit.size(1024, [512, 512, 64]), Some([512, 1, 1]));
    assert_eq!(WorkgroupShape::Limit.size(128, [512, 512, 64]), Some([128, 1, 1]));
    assert_eq!(WorkgroupShape::Fitting.size(128, [128; 3]), None);
}

#[test]
fn names_of_fillings_round_trip() {
    for (word, filling) in WorkgroupCount::EXAMPLES {
        assert_eq!(word.parse(), Ok(filling));
        assert_eq!(filling.to_string(), word);
    }
    for (word, count) in [("workgroups-1", 1), ("workgroups-65535", 65_535)] {
        assert_eq!(word.parse::<WorkgroupCount>().unwrap().workgroups(), Some(count));
    }
    for word in
        ["", "workgroups-", "workgroups-0", "workgroups-07", "workgroups-+7", "workgroups-65536", "256"]
    {
        assert!(word.parse::<WorkgroupCount>().is_err(), "{word}");
    }
}
