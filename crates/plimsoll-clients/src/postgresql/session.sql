-- What a session brings along and takes away again: the database keeps nothing of it.
CREATE OR REPLACE FUNCTION pg_temp.plimsoll_purchase(
    buyer INTEGER, placed DATE, net_cents BIGINT, tax_cents BIGINT, products INTEGER[], quantities INTEGER[], restock_below INTEGER
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    made BIGINT;
    wanted INTEGER;
BEGIN
    INSERT INTO orders (orderdate, customerid, netamount, tax, totalamount)
        VALUES (placed, buyer, net_cents / 100.0, tax_cents / 100.0, (net_cents + tax_cents) / 100.0) RETURNING orderid INTO made;
    FOR line IN 1 .. array_length(products, 1) LOOP
        wanted := quantities[line];
        -- Stock and sales change in one statement that is also the question whether there is enough.
        UPDATE inventory SET sales = sales + wanted,
            quan_in_stock = CASE WHEN quan_in_stock - wanted < restock_below THEN quan_in_stock ELSE quan_in_stock - wanted END
            WHERE prod_id = products[line] AND quan_in_stock >= wanted;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'PL001', MESSAGE = 'too little in stock';
        END IF;
        INSERT INTO orderlines (orderlineid, orderid, prod_id, quantity, orderdate) VALUES (line, made, products[line], wanted, placed);
        INSERT INTO cust_hist (customerid, orderid, prod_id) VALUES (buyer, made, products[line]);
    END LOOP;
    RETURN made;
END $$;
