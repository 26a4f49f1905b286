//! From the server to the client: lists, results, errors, the handshake.

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(tools_are_listed_as_written),
    case!(only_the_name_of_a_tool_changes_behind_a_prefix),
    case!(lists_keep_unknown_members),
    case!(templates_that_say_uri_are_listed_and_read),
    case!(whole_responses_pass_unchanged),
    case!(errors_pass_unchanged),
    case!(answers_in_a_batch_are_taken),
    case!(ids_that_come_back_as_strings_are_taken),
    case!(log_lines_on_standard_output_do_no_harm),
    case!(capabilities_and_server_info_are_told),
    case!(meta_of_the_handshake_is_told),
    case!(pages_of_a_list_are_gathered),
    case!(half_a_surrogate_pair_passes),
    case!(a_broken_answer_fails_its_call_at_once),
    case!(a_member_that_is_null_is_one_that_is_not_there),
    case!(deep_nesting_breaks_nothing),
];

/// A tool with everything that a typed gateway loses or rewrites.
const TOOL: &str = r#"{"zeta":1.0,"name":"x","inputSchema":{"type":"object","properties":{"z":{"type":"number","default":0.30,"maximum":1E2},"a":{"const":123456789012345678901234567890},"m":{"pattern":"^\/a\u00e9\ud83d\ude00$"}},"required":["z"],"$defs":{"q":{"minimum":-0.0}}},"annotations":{"readOnlyHint":true,"futureHint":{"deep":[1.0,-0.0,1e-7]}},"execution":{"taskSupport":"optional"},"icons":[],"_meta":{"vendor.example/x":null}}"#;

const VERSION: &str = "2025-06-18";

fn tools_are_listed_as_written() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("tools/list", &format!(r#""result":{{"tools":[{TOOL}]}}"#));
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let listed = gateway.ask("1", "tools/list", "{}");
    assert_eq!(listed.raw(&["result", "tools"]), format!("[{TOOL}]"));
}

fn only_the_name_of_a_tool_changes_behind_a_prefix() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.answers("tools/list", &format!(r#""result":{{"tools":[{TOOL}]}}"#));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let listed = gateway.ask("1", "tools/list", "{}");
    let renamed = TOOL.replace(r#""name":"x""#, r#""name":"alpha__x""#);
    assert_eq!(
        listed.raw(&["result", "tools"]),
        format!(r#"[{renamed},{{"name":"beta__x","inputSchema":{{"type":"object"}}}}]"#)
    );
}

fn lists_keep_unknown_members() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    let siblings = r#""vendor":{"n":1.0,"s":"\/"},"_meta":{"m":1E2}"#;
    let prompt = r#"{"name":"p","arguments":[{"name":"a","futureField":0.30}],"x-new":[1.0]}"#;
    let resource = r#"{"uri":"db:\/\/a","name":"a","size":1E2,"annotations":{"priority":1.0},"new":{}}"#;
    let template = r#"{"uriTemplate":"db://{x}","name":"t","more":0.10}"#;
    for (method, key, item) in [
        ("tools/list", "tools", TOOL),
        ("prompts/list", "prompts", prompt),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", template),
    ] {
        server.answers(method, &format!(r#""result":{{"{key}":[{item}],{siblings}}}"#));
    }
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    for (id, method, key, item) in [
        ("1", "tools/list", "tools", TOOL),
        ("2", "prompts/list", "prompts", prompt),
        ("3", "resources/list", "resources", resource),
        ("4", "resources/templates/list", "resourceTemplates", template),
    ] {
        let listed = gateway.ask(id, method, "{}");
        assert_eq!(listed.raw(&["result", key]), format!("[{item}]"), "{method}");
        assert_eq!(listed.raw(&["result", "vendor"]), r#"{"n":1.0,"s":"\/"}"#, "{method}");
        assert_eq!(listed.raw(&["result", "_meta"]), r#"{"m":1E2}"#, "{method}");
    }
}

fn templates_that_say_uri_are_listed_and_read() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let template = r#"{"uri":"db://users/{userId}","name":"User","mimeType":"application\/json"}"#;
    for server in [&alpha, &beta] {
        server.answers(
            "initialize",
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"templates":true,"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}"#,
        );
        server.answers("resources/list", r#""result":{"resources":[]}"#);
    }
    alpha.answers("resources/templates/list", r#""error":{"code":-32601,"message":"Method not found"}"#);
    beta.answers("resources/templates/list", &format!(r#""result":{{"resourceTemplates":[{template}]}}"#));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = beta.life();
    let listed = gateway.ask("1", "resources/templates/list", "{}");
    assert_eq!(listed.raw(&["result", "resourceTemplates"]), format!("[{template}]"));
    gateway
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"db:\/\/users/7","vendor":1.0}}"#);
    let read = life.take("resources/read");
    assert_eq!(read.raw(&["params"]), r#"{"uri":"db:\/\/users/7","vendor":1.0}"#);
    life.reply(&read, r#""result":{"contents":[{"uri":"db://users/7","text":"seven"}]}"#);
    assert_eq!(gateway.answer("2").raw(&["result", "contents"]), r#"[{"uri":"db://users/7","text":"seven"}]"#);
}

fn whole_responses_pass_unchanged() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    let methods = [
        ("tools/call", r#"{"name":"x"}"#),
        ("prompts/get", r#"{"name":"p"}"#),
        ("resources/read", r#"{"uri":"db://a"}"#),
        ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#),
        ("vendor/anything", r#"{"deep":[1.0]}"#),
    ];
    let responses = [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"video","url":"https:\/\/a","fps":1E2}]}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"resource","uri":"db://users/7"}],"isError":false}}"#,
        r#"{"result":{"structuredContent":{"a":1.0,"b":0.30,"c":12345678901234567890123},"vendor":{},"content":[]},"jsonrpc":"2.0","id":$ID}"#,
        r#"{"jsonrpc":"2.0","vendorBefore":{"t":1.0},"id":$ID,"result":{"_meta":{"a/b":[1E2]},"messages":[{"role":"user","content":{"type":"text","text":"\u00e9\/","_meta":{}}}]},"vendorAfter":null}"#,
        r#"{ "jsonrpc" : "2.0" , "id" : $ID , "result" : { "contents" : [ { "uri" : "x" , "blob" : "AA==" , "new" : 1.0 } ] } }"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#,
        r#"{"json\u0072pc":"2.0","\u0069d":$ID,"re\u0073ult":{"is\u0045rror":false}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"id":99,"jsonrpc":"1.0","error":{"code":1},"text":"\"id\":5"}}"#,
    ];
    let mut number = 0;
    for (method, params) in methods {
        for response in responses {
            number += 1;
            let id = format!("\"q-{number}\"");
            gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
            let request = life.take(method);
            life.send(&response.replace("$ID", &request.id()));
            assert_eq!(gateway.answer(&id).0, response.replace("$ID", &id), "{method}");
        }
    }
}

fn errors_pass_unchanged() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    // The newest of the versions with a handshake, which turns some errors of our own into results.
    gateway.begin("2025-11-25");
    let mut life = alpha.life();
    for (place, error) in [
        r#"{"code":-32602,"message":"bad","data":{"uri":"x","details":[1.0,0.30]}}"#,
        r#"{"code":-32003,"message":"the tool's own","data":"text"}"#,
        r#"{"code":-32042,"message":"go to a URL","data":{"elicitations":[{"mode":"url","url":"https:\/\/x"}]}}"#,
        r#"{"code":1,"message":"\u00e9","data":null,"vendor":true}"#,
        r#"{"code":-32603,"message":""}"#,
        r#"{"code":123456789012,"message":"a code that no 32 bits hold"}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let id = (place + 1).to_string();
        gateway.call(&id, "alpha__x");
        let request = life.take("tools/call");
        life.reply(&request, &format!(r#""error":{error},"extra":1.0"#));
        assert_eq!(gateway.answer(&id).0, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error},"extra":1.0}}"#));
    }
}

fn answers_in_a_batch_are_taken() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin("2025-03-26");
    let mut life = server.life();
    gateway.call("1", "x");
    gateway.call("2", "y");
    let (first, second) = (life.take("tools/call").id(), life.take("tools/call").id());
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}"#;
    life.send(&format!(
        r#"[{{"jsonrpc":"2.0","id":{second},"result":{{"n":2.0}}}},{note},{{"jsonrpc":"2.0","id":{first},"result":{{"n":1.0}}}}]"#
    ));
    assert_eq!(gateway.answer("1").0, r#"{"jsonrpc":"2.0","id":1,"result":{"n":1.0}}"#);
    assert_eq!(gateway.answer("2").0, r#"{"jsonrpc":"2.0","id":2,"result":{"n":2.0}}"#);
    assert_eq!(gateway.take("notifications/message").0, note);
}

fn ids_that_come_back_as_strings_are_taken() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let id = life.take("tools/call").id();
    life.send(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#));
    assert_eq!(gateway.answer("1").0, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

fn log_lines_on_standard_output_do_no_harm() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.leaves("initialize");
    let mut gateway = stage.single(&server, &[]);
    let mut life = server.life();
    let noise =
        ["Server running on stdio", "", "[info] {\"almost\": json", "42", "null", "\"text\"", "[]", "{}", "[1]"];
    noise.iter().for_each(|line| life.send(line));
    life.order("u");
    gateway.send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    let request = life.take("initialize");
    noise.iter().for_each(|line| life.send(line));
    life.reply(
        &request,
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    gateway.answer("0");
    gateway.call("1", "x");
    let request = life.take("tools/call");
    noise.iter().for_each(|line| life.send(line));
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(gateway.answer("1").raw(&["result"]), r#"{"content":[]}"#);
    gateway.error_line("Server running on stdio");
    // Whoever answers noise risks an endless exchange of errors, and a server may end at a message it cannot read.
    let answered: Vec<_> = life.unclaimed().into_iter().filter(|line| line.find(&["error"]).is_some()).collect();
    assert_eq!(answered, []);
}

fn capabilities_and_server_info_are_told() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"feature_x":true,"y":{"v":1.0}},"tools":{"streaming":true},"logging":{"levels":["debug","warn"]},"tasks":{"list":{}},"vendor.example/new":[0.30]},"serverInfo":{"name":"p","version":"1","title":"\u00e9","codename":{"n":1E2}},"instructions":"Say \"please\"","welcomeBasket":[1.0]}"#,
    );
    let mut gateway = stage.single(&server, &[]);
    let told = gateway.begin(VERSION);
    assert_eq!(
        told.raw(&["result", "serverInfo"]),
        r#"{"name":"p","version":"1","title":"\u00e9","codename":{"n":1E2}}"#
    );
    assert_eq!(told.raw(&["result", "instructions"]), r#""Say \"please\"""#);
    assert_eq!(told.raw(&["result", "welcomeBasket"]), "[1.0]");
    for (name, value) in [
        ("experimental", r#"{"feature_x":true,"y":{"v":1.0}}"#),
        ("logging", r#"{"levels":["debug","warn"]}"#),
        ("tasks", r#"{"list":{}}"#),
        ("vendor.example/new", "[0.30]"),
    ] {
        assert_eq!(told.raw(&["result", "capabilities", name]), value);
    }
    assert_eq!(told.raw(&["result", "capabilities", "tools", "streaming"]), "true");
}

fn meta_of_the_handshake_is_told() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"},"_meta":{"vendor.example/a":1.0}}"#,
    );
    let mut gateway = stage.single(&server, &[]);
    let told = gateway.begin(VERSION);
    assert_eq!(told.find(&["result", "_meta"]).as_deref(), Some(r#"{"vendor.example/a":1.0}"#));
}

fn pages_of_a_list_are_gathered() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.leaves("tools/list");
    let mut gateway = stage.single(&server, &[]);
    let mut life = server.life();
    gateway.send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    let cursor = r#""a\/b\u00e9""#;
    let first = life.take("tools/list");
    assert_eq!(first.find(&["params", "cursor"]), None);
    life.reply(&first, &format!(r#""result":{{"tools":[{TOOL}],"nextCursor":{cursor}}}"#));
    let second = life.take("tools/list");
    assert_eq!(second.raw(&["params", "cursor"]), cursor, "a cursor is given back as it was written");
    life.reply(&second, r#""result":{"tools":[{"name":"y"}],"nextCursor":null}"#);
    gateway.answer("0");
    assert_eq!(gateway.ask("1", "tools/list", "{}").raw(&["result", "tools"]), format!(r#"[{TOOL},{{"name":"y"}}]"#));
}

/// Programs that cut text by the number of its UTF-16 units send this, and the clients of such programs can read it.
fn half_a_surrogate_pair_passes() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let request = life.take("tools/call");
    let members = r#""result":{"content":[{"type":"text","text":"cut off here \ud83d"}]}"#;
    life.reply(&request, members);
    assert_eq!(gateway.answer("1").0, format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#));
}

/// Nobody is served by waiting for another answer to a request that has been answered, however badly.
fn a_broken_answer_fails_its_call_at_once() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    let broken = [
        r#""result":{"not":NaN}"#,
        r#""result":{"cut":"#,
        "\"result\":{\"control\":\"\t\"}",
        r#""result":{},"error":{"code":1,"message":"both"}"#,
        r#""neither":true"#,
    ];
    for (place, members) in broken.iter().enumerate() {
        gateway.call(&place.to_string(), "x");
        let request = life.take("tools/call");
        life.reply(&request, members);
    }
    let at_once = std::time::Duration::from_secs(2);
    let hanging: Vec<_> = (0..broken.len())
        .filter(|place| gateway.find_within(at_once, "an error", |line| line.has_id(&place.to_string())).is_none())
        .map(|place| broken[place])
        .collect();
    assert_eq!(hanging, Vec::<&str>::new());
    let answered: Vec<_> = life.unclaimed().into_iter().filter(|line| line.find(&["error"]).is_some()).collect();
    assert_eq!(answered, [], "an answer is never answered");
}

/// Many JSON-RPC libraries write both members of an answer, as version 1 of JSON-RPC demanded.
fn a_member_that_is_null_is_one_that_is_not_there() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"n":1.0},"error":null"#);
    assert_eq!(gateway.answer("1").raw(&["result"]), r#"{"n":1.0}"#);
    gateway.call("2", "x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":null,"error":{"code":7,"message":"m"}"#);
    assert_eq!(gateway.answer("2").raw(&["error"]), r#"{"code":7,"message":"m"}"#);
}

fn deep_nesting_breaks_nothing() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &["--timeout-secs", "1"]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let request = life.take("tools/call");
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    life.reply(&request, &format!(r#""result":{{"deep":{}}}"#, nested(100)));
    assert_eq!(gateway.answer("1").raw(&["result", "deep"]), nested(100));
    // Too deep to be read, in both directions, with and without an end.
    life.send(&nested(1_000_000));
    life.send(&"[".repeat(1_000_000));
    life.send(&r#"{"a":"#.repeat(500_000));
    gateway.send(&"[".repeat(1_000_000));
    gateway.send(&nested(1_000_000));
    gateway.call("2", "x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{}"#);
    gateway.answer("2").raw(&["result"]);
}
