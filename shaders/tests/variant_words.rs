//! Words of variants.

use shaders::Variant;
use shaders::variant::words;

#[test]
fn names_of_variants_round_trip() {
    assert_eq!(Variant::default().to_string(), "");
    for (word, variant) in words() {
        assert_ne!(variant, Variant::default(), "{word}");
        assert_eq!(word.parse(), Ok(variant));
        assert_eq!(variant.to_string(), word);
        for (other, second) in words() {
            let both = variant.overridden_by(second);
            assert_eq!(both.to_string().parse(), Ok(both), "{word}.{other}");
        }
    }
    let unknown = "volatile.fast".parse::<Variant>().unwrap_err();
    assert!(unknown.to_string().starts_with("unknown variant `fast`; expected one of glsl450, vulkan11"));
}
