package latchkey;

import java.util.List;
import java.util.Map;
import java.util.UUID;

/** What the methods in the tests get. Its Go counterpart is Order of facts_test.go. */
@SuppressWarnings("unused")
public final class Order {
    /** The state of an order. */
    public enum Status { NEW, PAID, SHIPPED }

    /** A line of an order. */
    public static final class Item {
        private String sku;
        private int qty;

        public String getSku() { return sku; }
        public int getQty() { return qty; }
    }

    /** Whoever ordered. */
    public static final class Owner {
        private String login;
        private Owner parent;

        public String getLogin() { return login; }
        public Owner getParent() { return parent; }
    }

    private long id;
    private int seq;
    private short level;
    private String name;
    private String note;
    private String empty;
    private String isbn;
    private Status status;
    private List<Item> items;
    private List<String> tags;
    private List<Long> ids;
    private Map<String, String> attrs;
    private boolean urgent;
    private Owner owner;
    private UUID ref;
    private byte[] data;

    public Long getId() { return id; }
    public Integer getSeq() { return seq; }
    public Short getLevel() { return level; }
    public String getName() { return name; }
    public String getNote() { return note; }
    public String getEmpty() { return empty; }
    public String getIsbn() { return isbn; }
    public String isbn() { return isbn; }
    public Status getStatus() { return status; }
    public List<Item> getItems() { return items; }
    public List<String> getTags() { return tags; }
    public List<Long> getIds() { return ids; }
    public Map<String, String> getAttrs() { return attrs; }
    public boolean isUrgent() { return urgent; }
    public Owner getOwner() { return owner; }
    public UUID getRef() { return ref; }
    public byte[] getData() { return data; }
}
