//! The reader agrees with `serde_json` wherever the two mean to agree, and differs only where the module says so.

use super::{
    FlawKind, Members, check, elements, find, get_string, has_lone_surrogate, quoted, splice, string, with_members,
};
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

#[test]
fn accepts_and_refuses() {
    let cases: &[(&str, Result<(), FlawKind>)] = &[
        ("0", Ok(())),
        (" -0.5e+10 ", Ok(())),
        ("[]", Ok(())),
        ("{}", Ok(())),
        ("[1, {\"a\":[true,false,null]}]", Ok(())),
        ("\"\\ud83d\\ude00 \\u00e9 \\/\"", Ok(())),
        ("", Err(FlawKind::End)),
        ("nul", Err(FlawKind::End)),
        ("nulL", Err(FlawKind::Unexpected)),
        ("01", Err(FlawKind::Trailing)),
        ("1.", Err(FlawKind::Number)),
        ("-", Err(FlawKind::Number)),
        ("1e", Err(FlawKind::Number)),
        ("+1", Err(FlawKind::Unexpected)),
        ("[1,]", Err(FlawKind::Unexpected)),
        ("[1 2]", Err(FlawKind::Unexpected)),
        ("[1}", Err(FlawKind::Unexpected)),
        ("{\"a\"}", Err(FlawKind::Unexpected)),
        ("{\"a\":1,}", Err(FlawKind::Unexpected)),
        ("{a:1}", Err(FlawKind::Unexpected)),
        ("{\"a\":1", Err(FlawKind::End)),
        ("\"tab\there\"", Err(FlawKind::Control)),
        ("\"longer run of text then a tab\there\"", Err(FlawKind::Control)),
        ("\"\\x\"", Err(FlawKind::Escape)),
        ("\"\\u12g4\"", Err(FlawKind::Escape)),
        ("\"\\ud800\"", Ok(())),
        ("{} {}", Err(FlawKind::Trailing)),
    ];
    for (text, expected) in cases {
        assert_eq!(check(text.as_bytes()).map(|_| ()).map_err(|flaw| flaw.kind), *expected, "{text}");
    }
}

#[test]
fn half_a_pair_is_noticed() {
    for (text, expected) in [
        (r#""\ud83d\ude00""#, false),
        (r#""\u0041 \\ud800""#, false),
        (r#""plain""#, false),
        (r#""\ud83d""#, true),
        (r#""\ud83d\u0041""#, true),
        (r#""\ude00""#, true),
        (r#"["ok",{"k":"x\ud800y"}]"#, true),
        (r#""\ud83d\"#, true),
        (r#""\"#, false),
    ] {
        assert_eq!(has_lone_surrogate(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn depth_limit_is_the_one_of_serde_json() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [1, 127, 128, 200] {
        let text = nested(depth);
        let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        assert_eq!(check(text.as_bytes()).is_ok(), theirs, "depth {depth}");
    }
}

#[test]
fn keys_are_compared_by_meaning() {
    let object = br#"{"\u0069d":1,"name":"a\nb","x":{}}"#;
    assert_eq!(find(object, ["id", "name", "absent"]).unwrap(), [Some(11..12), Some(20..26), None]);
    assert_eq!(get_string(object, "name").as_deref(), Some("a\nb"));
    assert_eq!(find(br#"{"id":1,"i\u0064":2}"#, ["id"]).unwrap_err().kind, FlawKind::Duplicate);
    assert_eq!(find(b"[]", ["id"]).unwrap_err().kind, FlawKind::NotObject);
}

#[test]
fn edits_keep_everything_else() {
    let mut out = Vec::new();
    splice(&mut out, b"{\"id\": 1 ,\"x\":1.50}", &[(7..8, b"\"q\"")]);
    assert_eq!(out, b"{\"id\": \"q\" ,\"x\":1.50}");
    assert_eq!(with_members(b"{ }", b"\"a\":1"), b"{\"a\":1 }");
    assert_eq!(with_members(b"{\"b\":2}", b"\"a\":1"), b"{\"a\":1,\"b\":2}");
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::hash_map(any::<String>(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_any_text(text in "[\\[\\]{}\",:0-9a-z\\\\ .eE+\\-]{0,40}") {
        prop_assert_eq!(check(text.as_bytes()).is_ok(), serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn reads_what_serde_json_writes(value in any_json()) {
        let text = serde_json::to_vec(&value).unwrap();
        prop_assert_eq!(check(&text), Ok(0..text.len()));
        if let Some(object) = value.as_object() {
            let mut members = Members::of(&text);
            let seen = members.by_ref().map(|member| member.map(|member| member.value.clone())).collect::<Result<Vec<_>, _>>().unwrap();
            prop_assert_eq!(seen.len(), object.len());
            prop_assert_eq!(members.end(), Some(text.len()));
        }
        if let Some(array) = value.as_array() {
            prop_assert_eq!(elements(&text).unwrap().len(), array.len());
        }
    }

    #[test]
    fn strings_survive_quoting(text in any::<String>()) {
        let quoted = quoted(&text);
        prop_assert_eq!(serde_json::from_slice::<String>(&quoted).unwrap(), text.clone());
        prop_assert_eq!(string(&quoted).unwrap().into_owned(), text);
    }
}
