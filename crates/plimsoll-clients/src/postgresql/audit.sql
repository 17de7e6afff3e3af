-- One statement is one snapshot.
SELECT
    (SELECT count(*) FROM customers),
    (SELECT count(*) FROM orders),
    (SELECT count(*) FROM orderlines),
    (SELECT count(*) FROM cust_hist),
    (SELECT coalesce(sum(sales), 0)::bigint FROM inventory),
    (SELECT coalesce(sum(quantity), 0)::bigint FROM orderlines),
    (SELECT count(*) FROM inventory LEFT JOIN (SELECT prod_id, sum(quantity) AS units FROM orderlines GROUP BY prod_id) ordered
        USING (prod_id) WHERE sales <> coalesce(units, 0)),
    (SELECT count(*) FROM inventory WHERE quan_in_stock < 0),
    (SELECT count(*) FROM orders LEFT JOIN (SELECT orderid, count(*) AS size FROM orderlines GROUP BY orderid) sized USING (orderid)
        WHERE coalesce(size, 0) NOT BETWEEN 1 AND 10),
    (SELECT count(*) FROM orderlines WHERE NOT EXISTS (SELECT 1 FROM orders WHERE orders.orderid = orderlines.orderid))
