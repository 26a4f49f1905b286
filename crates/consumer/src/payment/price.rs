//! What tools say they cost.

use rialto_payment::price::Rule;
use rialto_wire::service::PRICE;
use serde_json::Value;

/// What a tool's definition says; `None` if it says nothing that is understood.
pub fn price_of(definition: &Value) -> Option<Rule> {
    let price = definition.get("_meta")?.get(PRICE)?;
    serde_json::from_value(price.clone()).ok()
}

/// What all tools of a service cost, in a word or two. Those that say nothing count as free.
pub fn announced(prices: impl IntoIterator<Item = Option<Rule>>) -> String {
    let prices: Vec<Rule> = prices.into_iter().map(|price| price.unwrap_or(Rule::FREE)).collect();
    let costs: Vec<&Rule> = prices.iter().filter(|price| !price.is_free()).collect();
    match costs.as_slice() {
        [] => "free".to_owned(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) && costs.len() == prices.len() => {
            first.to_string()
        }
        all => {
            let order = |price: &&&Rule| (price.base, price.per_kb);
            let most = all.iter().max_by_key(order).map(ToString::to_string).unwrap_or_default();
            if costs.len() < prices.len() { format!("free to {most}") } else { format!("up to {most}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{announced, price_of};
    use serde_json::{Value, json};

    fn tool(price: &Value) -> Value {
        json!({ "name": "a", "_meta": { "rialto/price": price } })
    }

    #[test]
    fn prices_are_read_where_they_stand() {
        let price = price_of(&tool(&json!({ "sat": 5, "sat_per_kb": 1, "first_free": 3 }))).unwrap();
        assert_eq!(price.to_string(), "5 sat + 1 sat/kB, first 3 free");
        for bad in [json!({ "sat": -1 }), json!({ "sat": 1.5 }), json!("5"), json!({ "euro": 5 }), Value::Null] {
            assert_eq!(price_of(&tool(&bad)), None, "{bad}");
        }
        assert_eq!(price_of(&json!({ "name": "a" })), None);
    }

    #[test]
    fn a_service_costs_what_its_tools_cost() {
        let (free, five, nine) = (json!({ "name": "b" }), tool(&json!({ "sat": 5 })), tool(&json!({ "sat": 9 })));
        for (tools, expected) in [
            (vec![], "free"),
            (vec![&free, &free], "free"),
            (vec![&five, &five], "5 sat"),
            (vec![&five, &nine], "up to 9 sat"),
            (vec![&free, &nine, &five], "free to 9 sat"),
        ] {
            assert_eq!(announced(tools.into_iter().map(price_of)), expected);
        }
    }
}
